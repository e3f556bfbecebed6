"""Time stamps and anchors over HTTP: real protocols, and one effect whatever happens."""

import hashlib
import io
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from tests.support.waiting import together
from trunkline_profiles.executor.handlers import anchor, evidence, merkle, protect, rfc3161, stamp
from trunkline_profiles.executor.handlers.http import KEY_HEADER, Service
from trunkline_profiles.executor.handlers.problems import BadWork, ServiceProblem
from trunkline_profiles.executor.handlers.store import Store
from trunkline_profiles.executor.stubs.authority import StubAuthority
from trunkline_profiles.executor.stubs.chain import StubChain
from trunkline_profiles.executor.stubs.ledger import Ledger

TEXT = b"a contract"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path)
    protect.protect(made, "doc-1", io.BytesIO(TEXT))
    return made


@pytest.fixture
def authority() -> Iterator[StubAuthority]:
    with StubAuthority() as made:
        yield made


@pytest.fixture
def chain() -> Iterator[StubChain]:
    with StubChain() as made:
        yield made


def stamped(store: Store, authority: StubAuthority, key: str = "k1") -> rfc3161.Stamp:
    return stamp.stamp(store, "doc-1", Service(authority.url), authority.certificate, key)


def anchored(
    store: Store,
    chain: StubChain,
    key: str = "k1",
    *,
    confirmations: int = 3,
    wait: Callable[[int], None] = lambda _: None,
) -> anchor.Anchor:
    return anchor.anchor(
        store,
        "doc-1",
        Service(chain.url),
        "polygon",
        key,
        confirmations=confirmations,
        wait=wait,
    )


def test_a_time_stamp_is_verified_and_kept(store: Store, authority: StubAuthority) -> None:
    found = stamped(store, authority)
    assert found.authority == "CN=Local time stamp authority"
    digest, _ = rfc3161.read_request(store.need("doc-1", evidence.REQUEST))
    assert digest == hashlib.sha256(TEXT).digest()
    assert json.loads(store.need("doc-1", evidence.STAMP))["serial"] == str(found.serial)
    assert stamp.trust(Service(authority.url)) == authority.certificate


def test_another_program_verifies_it_too(
    store: Store, authority: StubAuthority, tmp_path: Path
) -> None:
    """The token is RFC 3161 by OpenSSL's reading, not only by ours."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("there is no openssl here")
    stamped(store, authority)
    (tmp_path / "ca.pem").write_bytes(authority.certificate.public_bytes(Encoding.PEM))
    done = subprocess.run(
        [
            *(program, "ts", "-verify", "-CAfile", tmp_path / "ca.pem"),
            *("-queryfile", store.path("doc-1", evidence.REQUEST)),
            *("-in", store.path("doc-1", evidence.RESPONSE)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Verification: OK" in done.stdout + done.stderr


def test_rc_20_a_second_attempt_finds_the_first_stamp(
    store: Store, authority: StubAuthority
) -> None:
    """RC-20, RC-49, RC-S06: the answer of the first is taken; the authority stamped once."""
    first = stamped(store, authority)
    store.path("doc-1", evidence.STAMP).unlink()
    assert stamped(store, authority) == first
    assert authority.ledger.keys() == ["k1"]
    assert authority.ledger.refused == []


def test_rc_20_a_worker_that_died_before_the_answer(store: Store, authority: StubAuthority) -> None:
    """RC-20: the request was kept before it was sent, so the nonce of the answer can be checked."""

    class Died(BaseException):
        pass

    class DyingService(Service):
        def post(self, *path: str, body: bytes, headers: object) -> object:  # type: ignore[override]
            super().post(*path, body=body, headers=headers)  # type: ignore[arg-type]
            raise Died

    with pytest.raises(Died):
        stamp.stamp(store, "doc-1", DyingService(authority.url), authority.certificate, "k1")
    assert evidence.RESPONSE not in store.names("doc-1")
    assert stamped(store, authority).serial
    assert authority.ledger.keys() == ["k1"]


def test_rc_20_the_ledger_refuses_a_repeated_key(store: Store, authority: StubAuthority) -> None:
    """RC-20: two attempts that both looked before either asked get the same stamp."""

    class BlindOnce(Service):
        def get(self, *path: str) -> object:  # type: ignore[override]
            return super().get("nothing") if not blind.pop() else super().get(*path)

    blind = [True, False]
    first = stamped(store, authority)
    second = stamp.stamp(store, "doc-1", BlindOnce(authority.url), authority.certificate, "k1")
    assert second == first
    assert authority.ledger.refused == ["k1"]


def test_a_ledger_takes_one_of_many_threads() -> None:
    """RC-20: also when they come at the same moment."""
    ledger: Ledger[int] = Ledger()
    made = together([partial(ledger.record, "k", partial(int, n)) for n in range(8)])
    assert len([one for one in made if one is not None]) == 1
    assert ledger.keys() == ["k"]
    assert len(ledger.refused) == 7


@pytest.mark.parametrize(
    ("forge", "problem"),
    [
        ("digest", "another document"),
        ("nonce", "another request"),
        ("time", "over another time stamp"),
        ("signature", "signature of the time stamp is wrong"),
        ("authority", "not trusted"),
        ("rejected", "refused: rejection"),
        ("garbage", "not a time stamp"),
    ],
)
def test_a_wrong_stamp_is_not_taken(authority: StubAuthority, forge: str, problem: str) -> None:
    digest = hashlib.sha256(TEXT).digest()
    request = rfc3161.build_request(digest, 7)
    trusted = authority.certificate
    answer = authority.stamp(request)
    match forge:
        case "digest":
            answer = authority.stamp(rfc3161.build_request(hashlib.sha256(b"x").digest(), 7))
        case "nonce":
            answer = authority.stamp(rfc3161.build_request(digest, 8))
        case "time":
            at = rfc3161.verify(answer, request, trusted).at
            earlier = at - timedelta(days=1)
            form = "%Y%m%d%H%M%SZ"
            answer = answer.replace(at.strftime(form).encode(), earlier.strftime(form).encode(), 1)
        case "signature":
            answer = answer[:-1] + bytes([answer[-1] ^ 1])
        case "authority":
            with StubAuthority() as other:
                trusted = other.certificate
        case "rejected":
            answer = authority.stamp(b"no request")
        case "garbage":
            answer = b"<html>busy</html>"
    with pytest.raises((BadWork, ServiceProblem), match=problem):
        rfc3161.verify(answer, request, trusted)


def test_an_anchor_is_confirmed_and_proven(store: Store, chain: StubChain) -> None:
    told: list[int] = []
    found = anchored(store, chain, wait=told.append)
    assert found.digest == hashlib.sha256(TEXT).hexdigest()
    assert told == [1, 2]
    steps = [(side, bytes.fromhex(node)) for side, node in found.proof]
    assert merkle.proves(bytes.fromhex(found.transaction), steps, bytes.fromhex(found.root))
    assert json.loads(store.need("doc-1", evidence.anchor_in("polygon")))["height"] == found.height


def test_rc_20_a_second_attempt_waits_for_the_first_transaction(
    store: Store, chain: StubChain
) -> None:
    """RC-20, RC-S06: a worker that died while it waited; the chain saw one key."""

    def die(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        anchored(store, chain, wait=die)
    found = anchored(store, chain)
    assert chain.ledger("polygon").keys() == ["k1"]
    assert chain.ledger("polygon").refused == []
    assert found.transaction == anchored(store, chain).transaction


def test_rc_20_anchors_of_eight_ghosts_are_one(store: Store, chain: StubChain) -> None:
    """RC-20, RC-49: all at the same moment; the ledger refuses the rest and all get the one."""
    found = together([lambda: anchored(store, chain, confirmations=1)] * 8)
    assert len({one.transaction for one in found}) == 1
    assert chain.ledger("polygon").keys() == ["k1"]


def test_a_chain_that_lies_is_found_out(store: Store, chain: StubChain) -> None:
    service = Service(chain.url)
    anchored(store, chain)
    real = service.get("polygon", "transactions", "k1").json()
    for change, problem in (
        ({"digest": "00"}, "another document"),
        ({"block": real["block"] | {"root": "00" * 32}}, "does not lead"),
        ({"block": real["block"] | {"hash": "00" * 32}}, "does not lead"),
        ({"id": "00" * 32}, "does not lead"),
    ):
        with pytest.raises(BadWork, match=problem):
            anchor.checked(real | change, "polygon", "k1", hashlib.sha256(TEXT).hexdigest())
    with pytest.raises(ServiceProblem, match="no valid proof"):
        anchor.checked({"id": "x"}, "polygon", "k1", "")


def test_a_service_that_is_away_can_be_asked_again(store: Store) -> None:
    with StubChain() as gone:
        url = gone.url
    with pytest.raises(ServiceProblem, match="did not answer"):
        anchor.anchor(
            store, "doc-1", Service(url), "polygon", "k", confirmations=1, wait=lambda _: None
        )
    with pytest.raises(BadWork, match="not the address"):
        Service("file:///etc/passwd").get("x")


def test_stubs_refuse_what_is_no_request(authority: StubAuthority, chain: StubChain) -> None:
    assert Service(authority.url).post("", body=b"", headers={}).status == 400
    assert Service(authority.url).get("else").status == 404
    post = Service(chain.url).post
    assert post("polygon", "transactions", body=b"{}", headers={KEY_HEADER: "k"}).status == 400
    digest = b'{"digest": "00"}'
    assert post("polygon", "transactions", body=digest, headers={}).status == 400
    assert Service(chain.url).get("polygon", "transactions", "none").status == 404


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13])
def test_every_leaf_has_a_path_to_the_root(size: int) -> None:
    leaves = [bytes([n]) for n in range(size)]
    root = merkle.root(leaves)
    for index, leaf in enumerate(leaves):
        steps = merkle.path(leaves, index)
        assert merkle.proves(leaf, steps, root)
        assert not merkle.proves(b"other", steps, root)

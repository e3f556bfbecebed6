"""Handlers of profile executor piece by piece: proofs, evidence, services and the pacer."""

import hashlib
import http.client
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trunkline_profiles.executor.handlers import anchor, merkle
from trunkline_profiles.executor.handlers import http as services
from trunkline_profiles.executor.handlers.decide import next_steps
from trunkline_profiles.executor.handlers.evidence import BUNDLE, RECORD, STAMP, anchor_in
from trunkline_profiles.executor.handlers.http import KEY_HEADER, Reply, Service
from trunkline_profiles.executor.handlers.problems import BadWork, ServiceProblem
from trunkline_profiles.executor.handlers.store import Store


def _sha(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def test_a_root_is_over_pairs_and_the_last_of_an_odd_number_moves_up() -> None:
    a, b, c = (_sha(b"\x00" + leaf) for leaf in (b"a", b"b", b"c"))
    pair = _sha(b"\x01" + a + b)
    assert merkle.root([]) == _sha(b"")
    assert merkle.root([b"a"]) == a
    assert merkle.root([b"a", b"b"]) == pair
    assert merkle.root([b"a", b"b", b"c"]) == _sha(b"\x01" + pair + c)
    assert merkle.path([b"a", b"b", b"c"], 0) == [("right", b), ("right", c)]
    assert merkle.path([b"a", b"b", b"c"], 1) == [("left", a), ("right", c)]
    assert merkle.path([b"a", b"b", b"c"], 2) == [("left", pair)]
    assert merkle.path([b"a"], 0) == []
    assert merkle.block_hash(3, "p", "r") == hashlib.sha256(b"3:p:r").hexdigest()


@pytest.mark.parametrize("count", range(1, 10))
def test_every_leaf_is_proved_and_no_other(count: int) -> None:
    leaves = [bytes([number]) for number in range(count)]
    root = merkle.root(leaves)
    for index, leaf in enumerate(leaves):
        path = merkle.path(leaves, index)
        assert merkle.proves(leaf, path, root) is True
        assert merkle.proves(b"other", path, root) is False


_ALL = {RECORD, STAMP, anchor_in("polygon"), anchor_in("bitcoin")}


@pytest.mark.parametrize(
    ("evidence", "steps"),
    [
        (set(), ()),
        ({STAMP}, ()),
        ({RECORD}, ("run_tsa", "submit_anchor_polygon", "submit_anchor_bitcoin")),
        (_ALL - {STAMP}, ("run_tsa",)),
        (_ALL - {anchor_in("bitcoin")}, ("submit_anchor_bitcoin",)),
        (_ALL, ("build_artifact",)),
        (_ALL | {BUNDLE}, ()),
        ({RECORD, BUNDLE}, ()),
    ],
)
def test_the_next_steps_follow_from_the_evidence(
    evidence: set[str], steps: tuple[str, ...]
) -> None:
    assert next_steps(evidence) == steps


class Chain:
    """A service that answers with these replies in turn."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.asked: list[Any] = []

    def get(self, *path: str) -> Reply:
        self.asked.append(path)
        return self.replies.pop(0)

    def post(self, *path: str, body: bytes, headers: Any) -> Reply:
        self.asked.append((*path, json.loads(body), headers))
        return self.replies.pop(0)


_DIGEST = "d" * 64


def _transaction(confirmations: int = 3, **changes: Any) -> dict[str, Any]:
    leaves = [b"\x01" * 32, b"\x02" * 32, b"\x03" * 32]
    root = merkle.root(leaves).hex()
    found: dict[str, Any] = {
        "id": leaves[1].hex(),
        "digest": _DIGEST,
        "confirmations": confirmations,
        "proof": [[side, node.hex()] for side, node in merkle.path(leaves, 1)],
        "block": {
            "height": 7,
            "previous": "p",
            "root": root,
            "hash": merkle.block_hash(7, "p", root),
        },
    }
    return found | changes


def _reply(found: Any, status: int = 200) -> Reply:
    return Reply(status, json.dumps(found).encode())


def _anchored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, chain: Chain
) -> tuple[Store, list[int], Any]:
    monkeypatch.setattr(anchor, "read_record", lambda *_: SimpleNamespace(sha256=_DIGEST))
    store = Store(tmp_path)
    waits: list[int] = []
    service: Any = chain
    made = anchor.anchor(store, "doc", service, "polygon", "k", confirmations=3, wait=waits.append)
    return store, waits, made


def test_a_document_is_submitted_once_and_waited_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    chain = Chain(
        Reply(404, b""),
        Reply(201, b""),
        _reply({"confirmations": 0}),
        _reply({"confirmations": 2}),
        _reply(_transaction(3)),
    )
    store, waits, made = _anchored(monkeypatch, tmp_path, chain)
    assert waits == [0, 2]
    look = ("polygon", "transactions", "k")
    headers = {"Content-Type": "application/json", KEY_HEADER: "k"}
    submit = ("polygon", "transactions", {"digest": _DIGEST}, headers)
    assert chain.asked == [look, submit, look, look, look]
    assert (made.height, made.digest, made.key, made.chain) == (7, _DIGEST, "k", "polygon")
    kept = json.loads(store.need("doc", anchor_in("polygon")))
    assert kept["transaction"] == made.transaction
    assert list(kept) == sorted(kept)


def test_an_earlier_submission_is_taken_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    chain = Chain(_reply(_transaction(3)))
    assert _anchored(monkeypatch, tmp_path, chain)[1] == []
    # Another attempt was quicker.
    chain = Chain(Reply(404, b""), Reply(409, b""), _reply(_transaction(4)))
    _anchored(monkeypatch, tmp_path, chain)


@pytest.mark.parametrize(
    ("replies", "problem", "message"),
    [
        ([Reply(403, b"{}")], ServiceProblem, "polygon answered 403"),
        ([_reply([])], ServiceProblem, "polygon answered 200"),
        ([_reply({})], ServiceProblem, "polygon answered 200"),
        ([Reply(404, b""), Reply(400, b"")], BadWork, "polygon answered 400"),
        (
            [Reply(404, b""), Reply(201, b""), Reply(404, b"")],
            ServiceProblem,
            "polygon no longer has the transaction of k",
        ),
        ([Reply(200, b"no json")], ServiceProblem, "The service did not return JSON"),
    ],
)
def test_a_bad_answer_of_the_chain_is_reported(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    replies: list[Reply],
    problem: type[Exception],
    message: str,
) -> None:
    with pytest.raises(problem) as told:
        _anchored(monkeypatch, tmp_path, Chain(*replies))
    assert str(told.value) == message


_BLOCK = _transaction()["block"]


@pytest.mark.parametrize(
    ("changes", "problem", "message"),
    [
        ({"proof": None}, ServiceProblem, "returned no valid proof"),
        ({"proof": [["left", "xy"]]}, ServiceProblem, "returned no valid proof"),
        ({"block": {}}, ServiceProblem, "returned no valid proof: 'height'"),
        ({"digest": "e" * 64}, BadWork, "The transaction of k in polygon is for another document"),
        ({"proof": []}, BadWork, "The proof of polygon does not lead to its block"),
        ({"id": "01" * 32}, BadWork, "The proof of polygon does not lead to its block"),
        (
            {"block": {**_BLOCK, "hash": "0"}},
            BadWork,
            "The proof of polygon does not lead to its block",
        ),
    ],
)
def test_an_anchor_must_be_for_this_document_and_proved(
    changes: dict[str, Any], problem: type[Exception], message: str
) -> None:
    with pytest.raises(problem) as told:
        anchor.checked(_transaction(**changes), "polygon", "k", _DIGEST)
    assert message in str(told.value)


class Wire:
    """A connection of http.client, made up."""

    made: list[Any] = []  # noqa: RUF012 - of one test at a time
    answer: Any = (200, b"{}")

    def __init__(self, host: str, port: int | None, *, timeout: float) -> None:
        self.place = (host, port, timeout)
        self.closed = False
        Wire.made.append(self)

    def request(self, *sent: Any) -> None:
        self.sent = sent

    def getresponse(self) -> Any:
        if isinstance(Wire.answer, Exception):
            raise Wire.answer
        status, body = Wire.answer
        return SimpleNamespace(status=status, read=lambda most: body[:most])

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> type[Wire]:
    monkeypatch.setattr(services, "HTTPConnection", Wire)
    monkeypatch.setattr(services, "HTTPSConnection", Wire)
    Wire.made, Wire.answer = [], (200, b"{}")
    return Wire


def test_a_service_is_asked_under_its_path(wire: type[Wire]) -> None:
    service = Service("http://h:81/base/")
    assert service.get("a/b", "c d").json() == {}
    assert service.post("x", body=b"y", headers={"K": "v"}).status == 200
    assert Service("http://h").get().status == 200
    assert [one.sent for one in wire.made] == [
        ("GET", "/base/a%2Fb/c%20d", None, {}),
        ("POST", "/base/x", b"y", {"K": "v"}),
        ("GET", "/", None, {}),
    ]
    assert wire.made[0].place == ("h", 81, 30.0)
    assert all(one.closed for one in wire.made)


@pytest.mark.parametrize("url", ["ftp://h", "h", "http://", ""])
def test_what_is_no_address_is_refused(wire: type[Wire], url: str) -> None:
    with pytest.raises(BadWork) as told:
        Service(url).get("x")
    assert str(told.value) == f"{url!r} is not the address of a service"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((500, b""), "http://h answered 500"),
        ((503, b""), "http://h answered 503"),
        (OSError("no"), "http://h did not answer: no"),
        (http.client.HTTPException("bad"), "http://h did not answer: bad"),
    ],
)
def test_a_service_that_does_not_work_is_a_separate_problem(
    wire: type[Wire], answer: Any, message: str
) -> None:
    wire.answer = answer
    with pytest.raises(ServiceProblem) as told:
        Service("http://h").get("x")
    assert str(told.value) == message
    assert wire.made[0].closed
    wire.answer = (499, b"x" * ((1 << 22) + 1))
    assert len(Service("http://h").get("x").body) == 1 << 22


@pytest.mark.parametrize("name", ["", ".x", "../x", "a/b", "x" * 101, "-a", "a b"])
def test_names_do_not_lead_out_of_the_store(tmp_path: Path, name: str) -> None:
    store = Store(tmp_path)
    for pair in ((name, "x"), ("x", name)):
        with pytest.raises(BadWork) as told:
            store.path(*pair)
        assert str(told.value) == f"{name!r} is not a valid name of a document or a file"
    assert store.path("x" * 100, "a.b_c-d").parent.name == "x" * 100


def test_evidence_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.names("doc") == frozenset()
    assert store.get("doc", "a") is None
    with pytest.raises(BadWork) as told:
        store.need("doc", "a")
    assert str(told.value) == "Document doc has no a: it was not protected here"
    assert store.put("doc", "a", b"one") == tmp_path / "doc" / "a"
    store.put("doc", "b", b"two")
    store.put("doc", "a", b"three")
    assert store.need("doc", "a") == store.get("doc", "a") == b"three"

    def fail() -> None:
        with store.writing("doc", "a") as stream:
            stream.write(b"half")
            raise KeyError("x")

    with pytest.raises(KeyError):
        fail()
    assert store.need("doc", "a") == b"three"
    assert sorted(path.name for path in (tmp_path / "doc").iterdir()) == ["a", "b"]
    (tmp_path / "doc" / ".draft").touch()
    assert store.names("doc") == {"a", "b"}

"""Which tokens are believed."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from tests.http.site import SECRET, Api, Site, token
from tests.support.http_server import Server, answer
from trunkline.http import ApiSettings, JwtSettings
from trunkline.http.authentication.jwks import RemoteKeys

RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC = ec.generate_private_key(ec.SECP256R1())


def pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def jwk(key: Any, kid: str) -> dict[str, Any]:
    kind = jwt.algorithms.RSAAlgorithm if key is RSA else jwt.algorithms.ECAlgorithm
    return {**kind.to_jwk(key.public_key(), as_dict=True), "kid": kid, "use": "sig"}


def signed(key: Any, algorithm: str, kid: str | None = None, **claims: Any) -> str:
    headers = {"kid": kid} if kid else {}
    claims = {"exp": time.time() + 60, "tenant": "a", **claims}
    return jwt.encode(claims, key, algorithm=algorithm, headers=headers)


def unsigned(header: dict[str, Any], claims: dict[str, Any], signature: bytes = b"") -> str:
    parts = (json.dumps(header).encode(), json.dumps(claims).encode(), signature)
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


def status(api: Api, bearer: str) -> int:
    return api.send("GET", "/v1/jobs", bearer=bearer).status_code


def refused(api: Api, bearer: str) -> str:
    response = api.send("GET", "/v1/jobs", bearer=bearer)
    assert response.status_code == 401, response.text
    assert response.headers["www-authenticate"].startswith("Bearer")
    assert response.json()["code"] == "sign_in_refused"
    detail: str = response.json()["detail"]
    return detail


@pytest.fixture
def make(site: Site) -> Any:
    made: list[Api] = []

    def make(**options: Any) -> Api:
        jwt_settings = JwtSettings(roles=(site.tenant_role,), **options)
        made.append(Api(site, ApiSettings(jwt=jwt_settings, sign_in_failures=100)))
        return made[-1]

    yield make
    for api in made:
        api.close()


def test_a_token_acts_for_its_tenant(api: Api) -> None:
    assert api.send("GET", "/v1/jobs", bearer=api.tenant("a")).status_code == 200


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"exp": time.time() - 31}, "expired"),
        ({"exp": None}, "lacks a claim"),
        ({"exp": "soon"}, "cannot be read"),
        ({"nbf": time.time() + 1000}, "not valid yet"),
        ({"aud": "other"}, "audience"),
        ({"role": "trunkline_operator"}, "role"),
        ({"role": "postgres"}, "role"),
        ({"role": ["a"]}, "role"),
    ],
)
def test_a_token_with_a_bad_claim_is_refused(api: Api, claims: Any, reason: str) -> None:
    assert reason in refused(api, token(**{"tenant": "a", **claims}))


def test_expiry_has_a_leeway(api: Api) -> None:
    assert status(api, api.tenant("a", exp=time.time() - 20)) == 200


@pytest.mark.parametrize(
    "bearer",
    [
        "x",
        "a.b.c",
        "e30.e30.",
        "." * 8,
        "x" * 9000,
        token("another secret that is long enough for it", tenant="a"),
        unsigned({"alg": "none", "typ": "JWT"}, {"tenant": "a", "exp": time.time() + 60}),
        unsigned({"alg": "None"}, {"tenant": "a", "exp": time.time() + 60}, b"x"),
        unsigned({"alg": "HS512"}, {"tenant": "a", "exp": time.time() + 60}, b"x"),
        unsigned({"alg": ["HS256"]}, {"tenant": "a", "exp": time.time() + 60}, b"x"),
        unsigned({"alg": "HS256", "kid": 3}, {"exp": time.time() + 60}, b"x"),
    ],
    # Tokens differ between processes of pytest-xdist, which compare the names of tests.
    ids=range(11),
)  # fmt: skip
def test_what_no_key_has_signed_is_refused(make: Any, bearer: str) -> None:
    refused(make(secret=SECRET), bearer)


def test_audience_and_issuer_must_be_ours(make: Any) -> None:
    api = make(secret=SECRET, audience="jobs", issuer="https://id.example.org")
    good: dict[str, Any] = {"tenant": "a", "aud": ["jobs", "mail"], "iss": "https://id.example.org"}
    assert status(api, token(**good)) == 200
    assert "audience" in refused(api, token(**{**good, "aud": "mail"}))
    assert "issuer" in refused(api, token(**{**good, "iss": "https://evil.example.org"}))
    assert "claim" in refused(api, token(**{**good, "aud": None}))
    assert "claim" in refused(api, token(**{**good, "iss": None}))


@pytest.mark.parametrize(("key", "algorithm"), [(RSA, "RS256"), (EC, "ES256")])
def test_a_public_key_is_for_its_own_algorithm_alone(
    make: Any, tmp_path: Path, key: Any, algorithm: str
) -> None:
    file = tmp_path / "key.pem"
    file.write_bytes(pem(key))
    api = make(keys_file=str(file))
    assert status(api, signed(key, algorithm)) == 200
    # Whoever has the public key signs with it as if it were a shared secret.
    claims = {"tenant": "a", "exp": time.time() + 60}
    header = {"alg": "HS256", "typ": "JWT"}
    text = unsigned(header, claims).rpartition(".")[0]
    mac = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
    signature = mac.sign(text.encode(), pem(key))
    refused(api, f"{text}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}")


def test_keys_of_a_provider_rotate() -> None:
    first = json.dumps({"keys": [jwk(RSA, "one")]}).encode()
    both = json.dumps({"keys": [jwk(RSA, "one"), jwk(EC, "two")]}).encode()
    now = 1000.0
    with (
        Server(answer(first), answer(both), answer(b"gone", status="500 Oops")) as provider,
        asyncio.Runner() as runner,
    ):
        remote = RemoteKeys(f"http://localhost:{provider.port}/keys", clock=lambda: now)

        def kids(wanted: str) -> list[str | None]:
            return [key.kid for key in runner.run(remote.keys(wanted))]

        assert kids("one") == kids("one") == ["one"]
        assert len(provider.requests) == 1
        # An unknown id fetches the set again, but not at once.
        assert kids("two") == ["one"]
        assert len(provider.requests) == 1
        now += 11
        assert kids("two") == ["one", "two"]
        assert len(provider.requests) == 2
        # The last good set stays while the provider fails.
        now += 3600
        assert kids("two") == ["one", "two"]
        assert len(provider.requests) == 3
        # But not for ever.
        now += 24 * 3600
        provider.close()
        assert kids("two") == []


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"{",
        b'{"keys": {}}',
        b'{"keys": [1, {"kty": "oct", "k": "c2VjcmV0", "kid": "one"}]}',
        b'{"keys": "' + b"x" * 300_000 + b'"}',
        b"[" * 100_000,
    ],
)
def test_a_strange_answer_of_a_provider_gives_no_keys(make: Any, body: bytes) -> None:
    with Server(answer(body)) as provider:
        api = make(jwks_urls=(f"http://localhost:{provider.port}/keys",))
        refused(api, signed(RSA, "RS256", "one"))
        refused(api, signed(b"secret" * 8, "HS256", "one"))


def test_a_redirect_of_a_provider_is_not_followed(make: Any) -> None:
    keys = json.dumps({"keys": [jwk(RSA, "one")]}).encode()
    with Server(answer(keys)) as other:
        moved = answer(b"", f"Location: http://localhost:{other.port}/", status="302 Found")
        with Server(moved) as provider:
            api = make(jwks_urls=(f"http://localhost:{provider.port}/keys",))
            refused(api, signed(RSA, "RS256", "one"))
        assert other.requests == []


def test_without_keys_no_token_is_believed(make: Any) -> None:
    assert "takes no tokens" in refused(make(), token(tenant="a"))

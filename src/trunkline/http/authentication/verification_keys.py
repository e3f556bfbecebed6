"""Keys that verify tokens. Each is bound to one algorithm, whatever the header of a token says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from trunkline.errors import ApiSettingInvalid

__all__ = ["ALGORITHMS", "VerificationKey", "keys_from_file", "keys_of_jwks", "secret_key"]

ALGORITHMS: Final = frozenset({"ES256", "HS256", "RS256"})
_MOST_KEYS: Final = 100
_SHORTEST_RSA: Final = 2048


@dataclass(frozen=True, slots=True)
class VerificationKey:
    """A key with its id and the only algorithm it is used with."""

    kid: str | None
    algorithm: str
    key: Any


def secret_key(secret: str) -> VerificationKey:
    """Return the key of a shared secret, for HS256 alone."""
    return VerificationKey(None, "HS256", secret.encode())


def keys_of_jwks(document: Any) -> list[VerificationKey]:
    """Return the public keys of a JWKS document that we can use; others are skipped.

    Shared secrets are skipped too: a document that anybody can read cannot contain one.
    """
    listed = document.get("keys") if isinstance(document, Mapping) else None
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        raise ValueError("not a JWKS document")
    keys = (_of_jwk(jwk) for jwk in listed[:_MOST_KEYS])
    return [key for key in keys if key is not None]


def keys_from_file(path: str) -> list[VerificationKey]:
    """Read public keys from a JWKS document or a PEM file."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        keys = (
            keys_of_jwks(json.loads(text))
            if text.lstrip().startswith("{")
            else [_of_public_key(None, load_pem_public_key(text.encode()))]
        )
    except (OSError, ValueError) as error:
        raise ApiSettingInvalid(
            f"The keys of tokens cannot be read from {path}: {error}",
            hint="TRUNKLINE_JWT_KEYS_FILE names a JWKS document or a public key as PEM.",
        ) from error
    if not keys:
        raise ApiSettingInvalid(
            f"{path} has no key for RS256 or ES256",
            hint="TRUNKLINE_JWT_KEYS_FILE names a JWKS document or a public key as PEM.",
        )
    return keys


def _of_jwk(jwk: Any) -> VerificationKey | None:
    if not isinstance(jwk, Mapping) or jwk.get("use", "sig") != "sig":
        return None
    wanted = {"RSA": "RS256", "EC": "ES256"}.get(str(jwk.get("kty")))
    # A key that states another algorithm is for that one.
    if wanted is None or jwk.get("alg", wanted) != wanted:
        return None
    kid = jwk.get("kid")
    try:
        key = jwt.PyJWK(dict(jwk), algorithm=wanted).key
        return _of_public_key(kid if isinstance(kid, str) else None, key)
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None


def _of_public_key(kid: str | None, key: Any) -> VerificationKey:
    if isinstance(key, rsa.RSAPublicKey) and key.key_size >= _SHORTEST_RSA:
        return VerificationKey(kid, "RS256", key)
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1):
        return VerificationKey(kid, "ES256", key)
    raise ValueError("not a public key for RS256 (2048 bits or more) or ES256")

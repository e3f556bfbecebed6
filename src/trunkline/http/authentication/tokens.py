"""Verifies JSON Web Tokens."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import jwt

from trunkline.errors import SignInRefused
from trunkline.http.authentication.jwks import RemoteKeys
from trunkline.http.authentication.verification_keys import (
    ALGORITHMS,
    VerificationKey,
    keys_from_file,
    secret_key,
)
from trunkline.http.caller import Caller
from trunkline.http.settings import JwtSettings

__all__ = ["Tokens"]

_LONGEST: Final = 8192
_LONGEST_NAME: Final = 200
_LATEST: Final = 253402300799  # the last second that a datetime can have


class Tokens:
    """Believes tokens that a key of the configuration has signed, for our audience and now."""

    def __init__(self, settings: JwtSettings) -> None:
        self._settings = settings
        self._keys: list[VerificationKey] = []
        if settings.secret:
            self._keys.append(secret_key(settings.secret))
        if settings.keys_file:
            self._keys += keys_from_file(settings.keys_file)
        self._remote = [RemoteKeys(url) for url in settings.jwks_urls]

    async def caller(self, token: str) -> Caller:
        """Return the caller whom a token names, or refuse it."""
        if not self._settings.is_configured:
            raise SignInRefused("This server takes no tokens.", hint=_NOT_CONFIGURED)
        claims = await self._claims(token)
        role = claims.get("role") or self._settings.roles[0]
        if role not in self._settings.roles:
            raise SignInRefused("The token names a role that this server does not serve.")
        subject = claims.get("sub")
        name = subject if isinstance(subject, str) and subject else "token"
        expires = min(float(claims["exp"]), _LATEST)
        return Caller(
            "token",
            name[:_LONGEST_NAME],
            role=role,
            claims=claims,
            expires_at=datetime.fromtimestamp(expires, UTC),
            subject=subject if isinstance(subject, str) else None,
        )

    async def _claims(self, token: str) -> Mapping[str, Any]:
        if len(token) > _LONGEST:
            raise SignInRefused("The token is too long.")
        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError, RecursionError) as error:
            raise SignInRefused("The token cannot be read.") from error
        algorithm, kid = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
            raise SignInRefused("The token has an algorithm that this server does not accept.")
        for key in await self._candidates(algorithm, kid if isinstance(kid, str) else None):
            try:
                return self._decoded(token, key)
            except jwt.InvalidSignatureError:
                continue
            except (jwt.PyJWTError, ValueError, TypeError, RecursionError, OverflowError) as error:
                # The key has signed it, so no other key is tried.
                raise SignInRefused(_reason(error)) from error
        raise SignInRefused("No key of this server has signed the token.")

    async def _candidates(self, algorithm: str, kid: str | None) -> list[VerificationKey]:
        """Return keys of this algorithm that have the id, or no id."""
        found = [
            key
            for key in self._keys
            if key.algorithm == algorithm and (kid is None or key.kid in {None, kid})
        ]
        if found or algorithm == "HS256":
            return found
        for remote in self._remote:
            found += [
                key
                for key in await remote.keys(kid)
                if key.algorithm == algorithm and (kid is None or key.kid in {None, kid})
            ]
        return found

    def _decoded(self, token: str, key: VerificationKey) -> Mapping[str, Any]:
        settings = self._settings
        claims = jwt.decode(
            token,
            key.key,
            algorithms=[key.algorithm],
            audience=settings.audience,
            issuer=settings.issuer,
            leeway=settings.leeway,
            # A token that names an audience is refused as long as none is configured here.
            options={"require": ["exp"]},
        )
        return dict(claims)


_REASONS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (jwt.ExpiredSignatureError, "The token has expired."),
    (jwt.ImmatureSignatureError, "The token is not valid yet."),
    (jwt.InvalidAudienceError, "The token is for another audience."),
    (jwt.InvalidIssuerError, "The token is from another issuer."),
    (jwt.MissingRequiredClaimError, "The token lacks a claim: exp, or aud or iss if configured."),
)


def _reason(error: Exception) -> str:
    for kind, reason in _REASONS:
        if isinstance(error, kind):
            return reason
    return "The token cannot be read."


_NOT_CONFIGURED: Final = (
    "Operators set TRUNKLINE_JWT_SECRET, TRUNKLINE_JWT_KEYS_FILE or TRUNKLINE_JWT_JWKS_URLS."
)

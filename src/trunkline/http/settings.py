"""Settings of the HTTP API, from the environment and the command line."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Self

from trunkline.errors import ApiSettingInvalid, InvalidDuration
from trunkline.model import seconds

__all__ = ["ApiSettings", "JwtSettings"]

_YES: Final = frozenset({"1", "true", "yes", "on"})
_NO: Final = frozenset({"0", "false", "no", "off"})
_SHORTEST_SECRET: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class JwtSettings:
    """Which tokens are believed. Keys and addresses come from here only, never from a token."""

    # HS256. At least 32 characters.
    secret: str | None = None
    # A file with a JWKS document, or with a public key as PEM.
    keys_file: str | None = None
    # Addresses of JWKS documents.
    jwks_urls: tuple[str, ...] = ()
    audience: str | None = None
    issuer: str | None = None
    leeway: float = 30.0
    # The roles of the database that a token may name in its claim `role`; the first one is for
    # tokens that name none.
    roles: tuple[str, ...] = ("authenticated",)

    @property
    def is_configured(self) -> bool:
        """Whether any token can be believed."""
        return bool(self.secret or self.keys_file or self.jwks_urls)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiSettings:
    """How the server listens, whom it believes and what it takes."""

    host: str = "127.0.0.1"
    port: int = 8100
    # Connections to the database.
    connections: int = 10
    max_body: int = 1 << 20
    body_timeout: float = 10.0
    # Origins whose pages may call the API; * for all.
    cors_origins: tuple[str, ...] = ()
    # Whether /metrics, and /openapi.json with its page, need no key.
    public_metrics: bool = False
    public_openapi: bool = False
    # Addresses of proxies whose X-Forwarded-For is believed; * for all.
    trusted_proxies: tuple[str, ...] = ()
    # Failed sign-ins of one address within a minute.
    sign_in_failures: int = 20
    # Profiles whose routes are mounted; None for all that are installed.
    mounted: tuple[str, ...] | None = None
    jwt: JwtSettings = JwtSettings()

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str] | None = None, /, **given: Any
    ) -> Self:
        """Return the settings of the environment; arguments that are not None win."""
        variables = os.environ if environment is None else environment
        values: dict[str, Any] = {}
        for name, (variable, read) in _VARIABLES.items():
            if text := variables.get(variable, "").strip():
                values[name] = _read(variable, text, read)
        tokens: dict[str, Any] = {}
        for name, (variable, read) in _JWT_VARIABLES.items():
            if text := variables.get(variable, "").strip():
                tokens[name] = _read(variable, text, read)
        settings = cls(**values, jwt=JwtSettings(**tokens))
        known = {field.name for field in fields(cls)}
        changes = {name: value for name, value in given.items() if value is not None}
        assert changes.keys() <= known  # noqa: S101 - a mistake of the caller
        return replace(settings, **changes)


def _read(variable: str, text: str, read: Callable[[str], Any]) -> Any:
    try:
        return read(text)
    except (ValueError, InvalidDuration) as error:
        # Not the value: it may be a secret.
        raise ApiSettingInvalid(
            f"{variable} has an invalid value: {error}",
            hint="docs/how-to/http.md lists the settings of the API.",
        ) from error


def _boolean(text: str) -> bool:
    if text.lower() in _YES | _NO:
        return text.lower() in _YES
    raise ValueError("write 1 or 0")


def _number(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            raise ValueError(f"write a number from {least} to {most}")
        return int(text)

    return read


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _duration(text: str) -> float:
    return seconds(float(text) if text.replace(".", "", 1).isdecimal() else text)


def _secret(text: str) -> str:
    if len(text) < _SHORTEST_SECRET:
        raise ValueError(f"a secret has at least {_SHORTEST_SECRET} characters")
    return text


def _addresses(text: str) -> tuple[str, ...]:
    for address in _names(text):
        local = address.startswith(("http://127.0.0.1", "http://localhost", "http://[::1]"))
        if not address.startswith("https://") and not local:
            raise ValueError("keys are fetched by https, or from this machine")
    return _names(text)


_VARIABLES: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "host": ("TRUNKLINE_API_HOST", str),
    "port": ("TRUNKLINE_API_PORT", _number(0, 65535)),
    "connections": ("TRUNKLINE_API_CONNECTIONS", _number(1, 1000)),
    "max_body": ("TRUNKLINE_API_MAX_BODY", _number(1024, 1 << 30)),
    "body_timeout": ("TRUNKLINE_API_BODY_TIMEOUT", _duration),
    "cors_origins": ("TRUNKLINE_API_CORS_ORIGINS", _names),
    "public_metrics": ("TRUNKLINE_API_PUBLIC_METRICS", _boolean),
    "public_openapi": ("TRUNKLINE_API_PUBLIC_OPENAPI", _boolean),
    "trusted_proxies": ("TRUNKLINE_API_TRUSTED_PROXIES", _names),
    "sign_in_failures": ("TRUNKLINE_API_SIGN_IN_FAILURES", _number(1, 100_000)),
    "mounted": ("TRUNKLINE_API_PROFILES", _names),
}
_JWT_VARIABLES: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "secret": ("TRUNKLINE_JWT_SECRET", _secret),
    "keys_file": ("TRUNKLINE_JWT_KEYS_FILE", str),
    "jwks_urls": ("TRUNKLINE_JWT_JWKS_URLS", _addresses),
    "audience": ("TRUNKLINE_JWT_AUDIENCE", str),
    "issuer": ("TRUNKLINE_JWT_ISSUER", str),
    "leeway": ("TRUNKLINE_JWT_LEEWAY", _duration),
    "roles": ("TRUNKLINE_JWT_ROLES", _names),
}

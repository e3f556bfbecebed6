"""A request as the bytes that are sent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from urllib.parse import SplitResult, quote, urlencode, urlsplit

from trunkline import __version__
from trunkline.client.codec import encode
from trunkline.errors import InvalidArgument

__all__ = ["Outgoing", "Target", "outgoing"]

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
_PORTS: Final = {"http": 80, "https": 443}
_REPEATABLE: Final = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PUT", "TRACE"})
_BODY_EXPECTED: Final = frozenset({"PATCH", "POST", "PUT"})
# What a path or a query may hold as it is; what is quoted already stays so.
_SAFE: Final = "/%:@!$&'()*+,;=~-._?"
# Set by us from what is sent, whatever a caller says.
_OURS: Final = frozenset({"connection", "content-length", "transfer-encoding"})


class Target(NamedTuple):
    """Where connections of one kind lead to."""

    secure: bool
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One request."""

    method: str
    url: str
    # Without the query, where keys may be: for errors and logs.
    place: str
    target: Target
    data: bytes

    @property
    def repeatable(self) -> bool:
        """Whether it may be sent again where nobody knows if it arrived."""
        return self.method in _REPEATABLE


def outgoing(
    method: str,
    url: str,
    *,
    json: Any = None,
    data: bytes | str | Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Outgoing:
    """Put a request together, or refuse what cannot be one."""
    if not _is_token(method):
        raise _misfit("method", "a word such as GET", method)
    method = method.upper()
    parts, target = _address(url)
    kind, body = _body(json, data)
    fields = {"Host": _host(parts, target), "User-Agent": f"trunkline/{__version__}"}
    fields["Accept"] = "*/*"
    if kind is not None:
        fields["Content-Type"] = kind
    _add(fields, headers or {})
    if body is not None or method in _BODY_EXPECTED:
        fields["Content-Length"] = str(len(body or b""))
    path = quote(parts.path or "/", safe=_SAFE)
    if parts.query:
        path += "?" + quote(parts.query, safe=_SAFE)
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
    place = f"{parts.scheme}://{fields['Host']}{parts.path}"
    return Outgoing(method, url, place, target, head + (body or b""))


def _address(url: str) -> tuple[SplitResult, Target]:
    try:
        parts = urlsplit(url)
        port = parts.port
        host = (parts.hostname or "").encode("idna").decode() if parts.hostname else ""
    except (AttributeError, TypeError, ValueError, UnicodeError) as error:
        raise _misfit("url", "an address such as https://api.example.com/v1", url) from error
    if parts.scheme not in _PORTS or not host:
        raise _misfit("url", "an address that begins with http:// or https://", url)
    if parts.username is not None or parts.password is not None:
        # Not repeated in the error: it would end in logs.
        raise _misfit("url", "an address without user and password: pass headers", parts.hostname)
    return parts, Target(parts.scheme == "https", host, port or _PORTS[parts.scheme])


def _host(parts: SplitResult, target: Target) -> str:
    host = f"[{target.host}]" if ":" in target.host else target.host
    return host if target.port == _PORTS[parts.scheme] else f"{host}:{target.port}"


def _body(
    json: Any, data: bytes | str | Mapping[str, Any] | None
) -> tuple[str | None, bytes | None]:
    if json is not None and data is not None:
        raise _misfit("json and data", "given one at a time", "both")
    if json is not None:
        try:
            return "application/json", encode(json)
        except TypeError as error:
            raise _misfit("json", f"what JSON can hold: {error}", type(json).__name__) from error
    if isinstance(data, Mapping):
        return "application/x-www-form-urlencoded", urlencode(data, doseq=True).encode()
    if isinstance(data, str):
        return "text/plain; charset=utf-8", data.encode()
    if data is None or isinstance(data, (bytes, bytearray, memoryview)):
        return (None, None) if data is None else ("application/octet-stream", bytes(data))
    raise _misfit("data", "bytes, text or a dictionary of form fields", type(data).__name__)


def _add(fields: dict[str, str], headers: Mapping[str, str]) -> None:
    known = {name.lower(): name for name in fields}
    for name, value in headers.items():
        if not _is_token(name):
            raise _misfit("headers", "names of letters, digits and hyphens", name)
        text = str(value)
        # The value is not repeated in the error: it may be a key.
        if any(ord(letter) < 32 or ord(letter) > 255 for letter in text if letter != "\t"):
            raise _misfit("headers", "values of one line in Latin-1", name)
        if name.lower() in _OURS:
            raise _misfit("headers", "without those that say how the request is sent", name)
        fields[known.setdefault(name.lower(), name)] = text


def _is_token(value: object) -> bool:
    return isinstance(value, str) and _TOKEN.fullmatch(value) is not None


def _misfit(argument: str, must_be: str, got: object) -> InvalidArgument:
    return InvalidArgument(
        "an argument of an HTTP request is not what it must be",
        hint=f"Pass {argument} as {must_be}.",
        detail={"argument": argument, "got": repr(got)},
    )

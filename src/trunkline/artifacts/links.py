"""Signed links to a local store: how they are made, and how a server answers them.

`answer_link` knows no web framework. It takes method, path, query, headers and the body of an
upload, and returns status, headers and a body, so that any server can use it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import format_datetime
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import parse_qsl, quote, unquote, urlencode

from trunkline.artifacts.names import content_disposition, is_safe_path
from trunkline.errors import FileMissing, LinkInvalid, StoreError, StoreFull

if TYPE_CHECKING:
    from trunkline.artifacts.local import LocalStore

__all__ = ["Answer", "answer_link", "signed_link", "signed_upload"]

_LONGEST: Final = 7 * 24 * 3600
_LENGTH: Final = re.compile(r"[0-9]{1,18}")
_RANGE: Final = re.compile(r"bytes=(\d{0,19})-(\d{0,19})")
_SAFE_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "private, max-age=3600",
    "Accept-Ranges": "bytes",
}
_READ: Final = ("expires", "type", "name", "key")
_UPLOAD: Final = ("expires", "bytes", "key")
_OUTCOMES: Final = {
    "new": (201, "The file is stored."),
    "same": (200, "The file was stored before."),
    "other": (409, "Another file was uploaded through this link before."),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request for a link. Close `body` when the client leaves."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Iterator[bytes] = field(default_factory=lambda: iter(()))


def signed_link(
    secret: tuple[str, bytes],
    base: str,
    path: str,
    *,
    expires_in: int,
    content_type: str | None,
    filename: str,
) -> str:
    """Return a link to a file with the type and the name under which it is sent."""
    fields = {"type": content_type or "application/octet-stream", "name": filename}
    return _link(secret, "GET", base, path, expires_in=expires_in, more=fields)


def signed_upload(
    secret: tuple[str, bytes], base: str, path: str, *, expires_in: int, max_bytes: int | None
) -> str:
    """Return a link that takes one file with PUT, of at most so many bytes."""
    fields = {"bytes": "" if max_bytes is None else str(max_bytes)}
    return _link(secret, "PUT", base, path, expires_in=expires_in, more=fields)


def answer_link(
    store: LocalStore,
    method: str,
    path: str,
    query: str,
    headers: Mapping[str, str],
    *,
    body: Iterable[bytes] = (),
) -> Answer:
    """Answer a request: `path` is what follows the link base, `headers` have any case.

    GET and HEAD read a file; a range of bytes is answered with 206. PUT writes one from `body`,
    through a link for uploads. A refused request names no reason that would help to guess.
    """
    given = {name.lower(): value for name, value in headers.items()}
    if method == "PUT":
        return _answer_upload(store, path, query, given, body)
    if method not in {"GET", "HEAD"}:
        return _text(405, "Only GET, HEAD and PUT are answered.", Allow="GET, HEAD, PUT")
    return _answer_read(store, method, path, query, given)


def _answer_read(  # noqa: PLR0911 - one answer for each status
    store: LocalStore, method: str, path: str, query: str, given: Mapping[str, str]
) -> Answer:
    try:
        file_path, fields = _verified(store, "GET", path, query)
        file = store.head(file_path)
    except LinkInvalid as error:
        return _text(403, error.message)
    except FileMissing:
        return _text(404, "The file does not exist any more.")
    except StoreError:
        return _text(503, "The store does not answer.", **{"Retry-After": "5"})
    size = file.bytes
    modified = format_datetime(file.modified_at, usegmt=True)
    tag = f'"{size:x}-{int(file.modified_at.timestamp() * 1_000_000):x}"'
    answer = {
        **_SAFE_HEADERS,
        "Content-Type": fields["type"],
        "Content-Disposition": content_disposition(fields["name"], fields["type"]),
        "Last-Modified": modified,
        "ETag": tag,
    }
    if given.get("if-none-match") == tag:
        return Answer(304, {"ETag": tag, "Cache-Control": _SAFE_HEADERS["Cache-Control"]})
    wanted = given.get("range", "") if given.get("if-range", tag) in {tag, modified} else ""
    chosen = _chosen_range(wanted, size)
    if chosen == "outside":
        return _text(
            416, "The range is outside of the file.", **{"Content-Range": f"bytes */{size}"}
        )
    start, stop = (0, size) if chosen is None else chosen
    status = 200
    if chosen is not None:
        status = 206
        answer["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
    answer["Content-Length"] = str(stop - start)
    if method == "HEAD" or start == stop:
        return Answer(status, answer)
    return Answer(status, answer, store.read(file_path, start, stop))


def _answer_upload(
    store: LocalStore, path: str, query: str, given: Mapping[str, str], body: Iterable[bytes]
) -> Answer:
    try:
        outcome = _received(store, path, query, given, body)
    except _Refused as refused:
        return _text(refused.status, refused.text)
    except LinkInvalid as error:
        return _text(403, error.message)
    except StoreFull:
        return _text(507, "The store has no space left.")
    except StoreError:
        return _text(503, "The store does not answer.", **{"Retry-After": "5"})
    status, text = _OUTCOMES[outcome]
    return _text(status, text)


def _received(
    store: LocalStore, path: str, query: str, given: Mapping[str, str], body: Iterable[bytes]
) -> str:
    """Write a file, which appears with its whole content. One that exists is not replaced."""
    file_path, fields = _verified(store, "PUT", path, query)
    length = given.get("content-length", "")
    # Without it, a client that leaves looks like the end of the file. Buckets require it too.
    if not _LENGTH.fullmatch(length):
        raise _Refused(411, "The header Content-Length is missing.")
    if "content-range" in given:
        raise _Refused(400, "A part of a file cannot be uploaded.")
    if fields["bytes"] and int(length) > int(fields["bytes"]):
        raise _Refused(413, f"The link takes at most {fields['bytes']} bytes.")
    return store.receive(file_path, _exactly(body, int(length)))


class _Refused(Exception):
    """An upload that is answered with an error."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


def _exactly(body: Iterable[bytes], length: int) -> Iterator[bytes]:
    passed = 0
    for chunk in body:
        passed += len(chunk)
        if passed > length:
            break
        yield chunk
    if passed != length:
        raise _Refused(400, f"The body does not have {length} bytes.")


def _link(
    secret: tuple[str, bytes],
    method: str,
    url: str,
    path: str,
    *,
    expires_in: int,
    more: Mapping[str, str],
) -> str:
    name, key = secret
    expires = str(int(time.time()) + min(expires_in, _LONGEST))
    fields = {"expires": expires, **more, "key": name}
    fields["signature"] = _signature(key, method, path, fields)
    return f"{url}/{quote(path)}?{urlencode(fields)}"


def _verified(store: LocalStore, method: str, path: str, query: str) -> tuple[str, dict[str, str]]:
    names = _UPLOAD if method == "PUT" else _READ
    pairs = parse_qsl(query, keep_blank_values=True)
    fields = dict(pairs)
    file_path = unquote(path.lstrip("/"))
    if (
        len(pairs) != len(fields)
        or set(fields) != {*names, "signature"}
        or not is_safe_path(file_path)
    ):
        raise LinkInvalid("The link is not valid.")
    key = store.secrets.active().get(fields["key"])
    # A wrong name of a key takes as long as a wrong signature.
    signed = {name: fields[name] for name in names}
    expected = _signature(key or b"unknown", method, file_path, signed)
    if not hmac.compare_digest(expected.encode(), fields["signature"].encode()) or key is None:
        raise LinkInvalid("The link is not valid.")
    if int(fields["expires"]) < time.time():
        raise LinkInvalid("The link has expired. Ask for a new one.")
    return file_path, fields


def _signature(key: bytes, method: str, path: str, fields: Mapping[str, str]) -> str:
    parts = (method, path, *fields.values())
    # Each part is preceded by its length, so that no two links have the same text.
    text = "".join(f"{len(part.encode())}:{part}" for part in parts)
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _chosen_range(wanted: str, size: int) -> tuple[int, int] | Literal["outside"] | None:
    """Return the bytes that a range means. None: send the whole file."""
    match = _RANGE.fullmatch(wanted.strip())
    if match is None or match.group(1) == match.group(2) == "":
        return None
    first, last = match.groups()
    if not first:
        start, stop = max(size - int(last), 0), size
    elif last and int(last) < int(first):
        return None
    else:
        start, stop = int(first), min(int(last) + 1, size) if last else size
    return (start, stop) if start < stop else "outside"


def _text(status: int, text: str, **headers: str) -> Answer:
    body = f"{text}\n".encode()
    return Answer(
        status,
        {
            **_SAFE_HEADERS,
            "Cache-Control": "no-store",
            "Content-Type": "text/plain; charset=utf-8",
            "Content-Length": str(len(body)),
            **headers,
        },
        iter([body]),
    )

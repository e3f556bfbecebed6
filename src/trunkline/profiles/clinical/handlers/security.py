"""The security check: what a file really is, that it is whole, and that nothing in it is alive.

A document is judged by its bytes. What the uploader said about it counts only if it is wrong.
"""

from __future__ import annotations

import hashlib
import re
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from trunkline.profiles.clinical.handlers.problems import Rejected

__all__ = ["LARGEST", "Screened", "screen"]

LARGEST: Final = 50 << 20
# Pixels: a page of A3 at 600 dots an inch. A small file can hold a picture that fills the memory.
_MOST_PIXELS: Final = 80_000_000
_LARGEST_INFLATED: Final = 64 << 20

_PNG: Final = b"\x89PNG\r\n\x1a\n"
_MAGIC: Final[tuple[tuple[bytes, str], ...]] = (
    (b"%PDF-", "pdf"),
    (_PNG, "png"),
    (b"\xff\xd8\xff", "jpeg"),
    (b"II*\x00", "tiff"),
    (b"MM\x00*", "tiff"),
)
_MEDIA: Final = {
    "pdf": "application/pdf",
    "png": "image/png",
    "jpeg": "image/jpeg",
    "tiff": "image/tiff",
}
# What a PDF can do when somebody opens it, or carry along. Long names only: they are looked for in
# compressed data too, where a short one turns up by chance.
_ALIVE: Final = re.compile(
    rb"/(JavaScript|Launch|EmbeddedFiles?|RichMedia|SubmitForm|ImportData|Rendition)"
    rb"(?![A-Za-z0-9])"
)
_ESCAPED: Final = re.compile(rb"#([0-9A-Fa-f]{2})")
_ENCRYPTED: Final = re.compile(rb"/Encrypt(?![A-Za-z0-9])")
_STREAM: Final = re.compile(rb"obj\b(.{0,4096}?)\bstream\r?\n", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Screened:
    """What the check found out about a file that passed."""

    kind: str
    media_type: str
    size: int
    sha256: str


def screen(data: bytes, facts: Mapping[str, Any] | None = None) -> Screened:
    """Let a file pass, or raise Rejected with a stable code."""
    facts = facts or {}
    if not data:
        raise Rejected("empty_file", "the file is empty")
    if len(data) > LARGEST:
        raise Rejected("too_large", f"the file has {len(data)} bytes, the largest is {LARGEST}")
    kind = next((name for magic, name in _MAGIC if data.startswith(magic)), None)
    if kind is None:
        raise Rejected("unknown_type", "the file is neither PDF, PNG, JPEG nor TIFF")
    digest = hashlib.sha256(data).hexdigest()
    _compare(facts, kind, len(data), digest)
    _CHECKS[kind](data)
    return Screened(kind, _MEDIA[kind], len(data), digest)


def _compare(facts: Mapping[str, Any], kind: str, size: int, digest: str) -> None:
    said = facts.get("mime_type")
    if said is not None and said != _MEDIA[kind]:
        raise Rejected("type_mismatch", f"the file is {_MEDIA[kind]} and not {said}")
    if facts.get("size_bytes", size) != size:
        raise Rejected("size_mismatch", f"the file has {size} bytes, not {facts['size_bytes']}")
    if facts.get("sha256", digest) != digest:
        raise Rejected("hash_mismatch", "the file is not the one that was uploaded")


def _check_pdf(data: bytes) -> None:
    if b"%%EOF" not in data[-2048:]:
        raise Rejected("damaged", "the PDF has no end")
    # A letter of a name can be written as #xx.
    plain = _ESCAPED.sub(lambda found: bytes([int(found[1], 16)]), data)
    if _ENCRYPTED.search(plain):
        raise Rejected("encrypted", "the PDF is encrypted and cannot be looked into")
    for part in (plain, *_object_streams(data)):
        found = _ALIVE.search(part)
        if found:
            raise Rejected("active_content", f"the PDF has {found[0].decode()}")


def _object_streams(data: bytes) -> list[bytes]:
    """Objects can be packed into compressed streams, where a plain search does not see them."""
    found = []
    left = _LARGEST_INFLATED
    for match in _STREAM.finditer(data):
        head = _ESCAPED.sub(lambda one: bytes([int(one[1], 16)]), match[1])
        if b"/ObjStm" not in head:
            continue
        if b"/Filter" in head:
            filters = re.findall(rb"/(\w+Decode)", head)
            if filters != [b"FlateDecode"]:
                raise Rejected("unreadable", "objects of the PDF are packed in an unusual way")
            engine = zlib.decompressobj()
            try:
                part = engine.decompress(data[match.end() :], left)
            except zlib.error as error:
                raise Rejected("damaged", "a stream of the PDF cannot be unpacked") from error
            if engine.unconsumed_tail:
                raise Rejected("too_large", "the PDF is too large when it is unpacked")
            left -= len(part)
            found.append(_ESCAPED.sub(lambda one: bytes([int(one[1], 16)]), part))
    return found


def _check_png(data: bytes) -> None:
    at = len(_PNG)
    size = None
    while True:
        if at + 12 > len(data):
            raise Rejected("damaged", "the PNG is cut short")
        length, name = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        (checksum,) = struct.unpack(">I", data[at + 8 + length : at + 12 + length] or b"\0" * 4)
        if len(body) < length or zlib.crc32(name + body) != checksum:
            raise Rejected("damaged", f"a part of the PNG is damaged: {name!r}")
        at += 12 + length
        if name == b"IHDR" and length == 13:
            size = struct.unpack(">II", body[:8])
        if name == b"IEND":
            break
    if at != len(data):
        # A file that is a picture for one program and an archive or a page for another.
        raise Rejected("trailing_data", "something follows the end of the PNG")
    _check_size(size)


def _check_jpeg(data: bytes) -> None:
    if b"\xff\xd9" not in data[-4096:]:
        raise Rejected("damaged", "the JPEG has no end")
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker, length = data[at + 1], struct.unpack(">H", data[at + 2 : at + 4])[0]
        # A start of frame has the size; C4, C8 and CC are something else.
        if 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            _check_size((width, height))
            return
        at += 2 + length
    raise Rejected("damaged", "the JPEG has no picture")


def _check_tiff(data: bytes) -> None:
    order = "<" if data.startswith(b"II") else ">"
    size = {}
    try:
        (place,) = struct.unpack_from(f"{order}I", data, 4)
        (entries,) = struct.unpack_from(f"{order}H", data, place)
        for number in range(entries):
            tag, kind, _ = struct.unpack_from(f"{order}HHI", data, place + 2 + 12 * number)
            if tag in {256, 257}:
                form = "H" if kind == 3 else "I"
                offset = place + 2 + 12 * number + 8
                (size[tag],) = struct.unpack_from(f"{order}{form}", data, offset)
    except struct.error as error:
        raise Rejected("damaged", "the TIFF is cut short") from error
    _check_size((size.get(256, 0), size.get(257, 0)))


def _check_size(size: tuple[int, ...] | None) -> None:
    if size is None or 0 in size:
        raise Rejected("damaged", "the picture has no size")
    if size[0] * size[1] > _MOST_PIXELS:
        raise Rejected("too_large", f"the picture has {size[0]} x {size[1]} pixels")


_CHECKS: Final[dict[str, Callable[[bytes], None]]] = {
    "pdf": _check_pdf,
    "png": _check_png,
    "jpeg": _check_jpeg,
    "tiff": _check_tiff,
}

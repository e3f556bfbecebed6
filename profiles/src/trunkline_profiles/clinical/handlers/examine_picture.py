"""Examine one picture and print a verdict as JSON; run as a script in a process with limits.

``python -I -S examine_picture.py KIND BOUNDS`` reads the document from standard input. Only the
standard library is imported, and pictures are unpacked only to count their bytes.
"""

from __future__ import annotations

import json
import struct
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final


class Refused(Exception):
    """The document is refused."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def check_png(data: bytes, bounds: Mapping[str, Any]) -> None:
    """Refuse a PNG with a damaged part, or with more pixels than its header states."""
    head, packed = b"", []
    for name, body in _parts_of_png(data):
        if name == b"IHDR" and len(body) == 13:
            head = body
        elif name == b"IDAT":
            packed.append(body)
        elif name in {b"zTXt", b"iTXt", b"iCCP"}:
            _refuse_bomb(name, body, bounds["inflated"])
    if not head:
        raise Refused("damaged", "the PNG has no size")
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", head)
    _check_pixels((width, height), bounds)
    samples = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}.get(colour, 0)
    if not samples or depth not in {1, 2, 4, 8, 16}:
        raise Refused("damaged", "the PNG has an invalid colour type")
    # Each row starts with one extra byte; interlaced pictures have up to seven smaller ones.
    row = (width * samples * depth + 7) // 8 + 1
    most = height * row if not interlaced else 2 * height * row + 64
    if (unpacked := _inflated(packed, most)) is None or unpacked > most:
        raise Refused("damaged", "the picture of the PNG differs from its stated size")


def _parts_of_png(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at, name = 8, b""
    while name != b"IEND":
        if at + 12 > len(data):
            raise Refused("damaged", "the PNG is cut short")
        length, name = struct.unpack_from(">I4s", data, at)
        if at + 12 + length > len(data):
            raise Refused("damaged", f"a part of the PNG is cut short: {name!r}")
        body = data[at + 8 : at + 8 + length]
        (checksum,) = struct.unpack_from(">I", data, at + 8 + length)
        if zlib.crc32(name + body) != checksum:
            raise Refused("damaged", f"a part of the PNG is damaged: {name!r}")
        yield name, body
        at += 12 + length
    if at != len(data):
        # Such a file may be a picture for one program and an archive or a page for another.
        raise Refused("trailing_data", "data follows the end of the PNG")


def _refuse_bomb(name: bytes, body: bytes, most: int) -> None:
    at = body.find(b"x\x9c")
    for start in {at, body.find(b"\0") + 2} - {-1}:
        if (_inflated([body[start:]], most) or 0) > most:
            raise Refused("too_large", f"a part of the PNG is too large when unpacked: {name!r}")


def _inflated(parts: list[bytes], most: int) -> int | None:
    """Return the unpacked size, slightly above ``most`` if larger; None if unpacking fails."""
    engine, size = zlib.decompressobj(), 0
    try:
        for part in parts:
            left = part
            while left and size <= most:
                size += len(engine.decompress(left, 1 << 20))
                left = engine.unconsumed_tail
    except zlib.error:
        return None
    return size


def check_jpeg(data: bytes, bounds: Mapping[str, Any]) -> None:
    if b"\xff\xd9" not in data[-4096:]:
        raise Refused("damaged", "the JPEG has no end")
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker, (length,) = data[at + 1], struct.unpack_from(">H", data, at + 2)
        # A start-of-frame marker has the size; C4, C8 and CC are other markers.
        if 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:
            height, width = struct.unpack_from(">HH", data, at + 5)
            _check_pixels((width, height), bounds)
            return
        at += 2 + length
    raise Refused("damaged", "the JPEG has no picture")


def check_tiff(data: bytes, bounds: Mapping[str, Any]) -> None:
    order = "<" if data.startswith(b"II") else ">"
    size = {}
    (place,) = struct.unpack_from(f"{order}I", data, 4)
    (entries,) = struct.unpack_from(f"{order}H", data, place)
    for number in range(entries):
        at = place + 2 + 12 * number
        tag, kind, _ = struct.unpack_from(f"{order}HHI", data, at)
        if tag in {256, 257}:
            (size[tag],) = struct.unpack_from(f"{order}{'H' if kind == 3 else 'I'}", data, at + 8)
    _check_pixels((size.get(256, 0), size.get(257, 0)), bounds)


def _check_pixels(size: tuple[int, int], bounds: Mapping[str, Any]) -> None:
    if 0 in size:
        raise Refused("damaged", "the picture has no size")
    if size[0] * size[1] > bounds["pixels"] or max(size) > bounds["side"]:
        raise Refused("too_large", f"the picture has {size[0]} x {size[1]} pixels")


_CHECKS: Final[dict[str, Callable[[bytes, Mapping[str, Any]], None]]] = {
    "png": check_png,
    "jpeg": check_jpeg,
    "tiff": check_tiff,
}


def main() -> None:
    """Print READY, then the verdict."""
    kind, bounds = sys.argv[1:3]
    sys.stdout.write("READY\n")
    sys.stdout.flush()
    verdict = {"passed": kind}
    try:
        _CHECKS[kind](sys.stdin.buffer.read(), json.loads(bounds))
    except Refused as refusal:
        verdict = {"refused": refusal.code, "message": str(refusal)}
    except MemoryError:
        verdict = {"refused": "over_limits", "message": "reading the picture takes too much memory"}
    except struct.error as error:
        verdict = {"refused": "damaged", "message": f"the picture is cut short: {error}"}
    sys.stdout.write(json.dumps({name: text[:300] for name, text in verdict.items()}))


if __name__ == "__main__":
    main()

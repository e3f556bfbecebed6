"""Handlers of profile clinical piece by piece: pictures, limits of programs, tools, providers."""

import io
import json
import struct
import sys
import zlib
from types import SimpleNamespace
from typing import Any

import pytest

from trunkline_profiles.clinical.handlers import examine_picture
from trunkline_profiles.clinical.handlers.examine_picture import Refused

_BOUNDS = {"pixels": 1000, "side": 100, "inflated": 5000}


def _part(name: bytes, body: bytes, *, checksum: int | None = None) -> bytes:
    total = zlib.crc32(name + body) if checksum is None else checksum
    return struct.pack(">I4s", len(body), name) + body + struct.pack(">I", total)


def _png(
    width: int = 4,
    height: int = 3,
    *,
    depth: int = 8,
    colour: int = 2,
    interlaced: int = 0,
    rows: int | None = None,
    more: bytes = b"",
    tail: bytes = b"",
) -> bytes:
    samples = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}.get(colour, 1)
    row = (width * samples * depth + 7) // 8 + 1
    size = height * row if rows is None else rows
    packed = zlib.compress(bytes(size))
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced)
    return (
        b"\x89PNG\r\n\x1a\n"
        + _part(b"IHDR", head)
        + more
        # In two parts, as programs write them.
        + _part(b"IDAT", packed[:5])
        + _part(b"IDAT", packed[5:])
        + _part(b"IEND", b"")
        + tail
    )


def _jpeg(width: int, height: int, *, marker: int = 0xC0, end: bytes = b"\xff\xd9") -> bytes:
    frame = struct.pack(">BBHBHH", 0xFF, marker, 17, 8, height, width)
    other = b"\xff\xe0" + struct.pack(">H", 4) + b"ab"
    return b"\xff\xd8" + other + frame + bytes(20) + end


def _tiff(order: str, entries: list[tuple[int, int, int]]) -> bytes:
    head = (b"II" if order == "<" else b"MM") + struct.pack(f"{order}HI", 42, 8)
    rows = b""
    for tag, kind, value in entries:
        rows += struct.pack(f"{order}HHI", tag, kind, 1)
        rows += struct.pack(f"{order}{'H2x' if kind == 3 else 'I'}", value)
    return head + struct.pack(f"{order}H", len(entries)) + rows


def _inflating(size: int) -> bytes:
    return b"key\0\0" + zlib.compress(bytes(size))


_NO_SIZE = "the picture has no size"
_TOO_SMALL = "the picture of the PNG differs from its stated size"


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("png", _png()),
        *(("png", _png(colour=colour)) for colour in (0, 2, 3, 4, 6)),
        *(("png", _png(depth=depth, colour=0)) for depth in (1, 2, 4, 8, 16)),
        ("png", _png(10, 100)),
        ("png", _png(100, 10)),
        ("png", _png(rows=1)),
        ("png", _png(interlaced=1, rows=2 * 3 * 13 + 64)),
        ("png", _png(more=_part(b"zTXt", _inflating(5000)))),
        ("png", _png(more=_part(b"tEXt", b"x" * 9000))),
        ("jpeg", _jpeg(10, 100)),
        *(("jpeg", _jpeg(4, 3, marker=marker)) for marker in (0xC1, 0xC2, 0xCF)),
        ("jpeg", _jpeg(4, 3, end=b"\xff\xd9" + bytes(4000))),
        ("tiff", _tiff("<", [(256, 3, 4), (257, 4, 3)])),
        ("tiff", _tiff(">", [(1, 3, 0), (256, 4, 4), (257, 3, 3)])),
    ],
)
def test_a_sound_picture_passes(kind: str, data: bytes) -> None:
    examine_picture._CHECKS[kind](data, _BOUNDS)  # noqa: SLF001


@pytest.mark.parametrize(
    ("kind", "data", "code", "message"),
    [
        ("png", _png(tail=b"PK"), "trailing_data", "data follows the end of the PNG"),
        ("png", _png()[:-1], "damaged", "the PNG is cut short"),
        ("png", b"\x89PNG\r\n\x1a\n", "damaged", "the PNG is cut short"),
        ("png", _png()[:8] + _part(b"IEND", b""), "damaged", "the PNG has no size"),
        (
            *("png", _png()[:8] + struct.pack(">I4s", 99, b"IHDR") + bytes(20), "damaged"),
            "a part of the PNG is cut short: b'IHDR'",
        ),
        (
            *("png", _png(more=_part(b"tEXt", b"x", checksum=1)), "damaged"),
            "a part of the PNG is damaged: b'tEXt'",
        ),
        ("png", _png(0, 3), "damaged", _NO_SIZE),
        ("png", _png(4, 0), "damaged", _NO_SIZE),
        ("png", _png(colour=5), "damaged", "the PNG has an invalid colour type"),
        ("png", _png(depth=3, colour=0), "damaged", "the PNG has an invalid colour type"),
        ("png", _png(rows=3 * 13 + 1), "damaged", _TOO_SMALL),
        ("png", _png(interlaced=1, rows=2 * 3 * 13 + 65), "damaged", _TOO_SMALL),
        ("png", _png(11, 100), "too_large", "the picture has 11 x 100 pixels"),
        ("png", _png(101, 1), "too_large", "the picture has 101 x 1 pixels"),
        *(
            (
                *("png", _png(more=_part(name, _inflating(5001))), "too_large"),
                f"a part of the PNG is too large when unpacked: {name!r}",
            )
            for name in (b"zTXt", b"iTXt", b"iCCP")
        ),
        ("jpeg", _jpeg(4, 3, end=b""), "damaged", "the JPEG has no end"),
        ("jpeg", _jpeg(4, 3, end=b"\xff\xd9" + bytes(4096)), "damaged", "the JPEG has no end"),
        *(
            ("jpeg", _jpeg(4, 3, marker=marker), "damaged", "the JPEG has no picture")
            for marker in (0xC4, 0xC8, 0xCC, 0xBF, 0xD0)
        ),
        ("jpeg", _jpeg(0, 3), "damaged", _NO_SIZE),
        ("jpeg", _jpeg(11, 100), "too_large", "the picture has 11 x 100 pixels"),
        ("tiff", _tiff("<", [(256, 3, 4)]), "damaged", _NO_SIZE),
        (
            "tiff",
            _tiff(">", [(256, 4, 11), (257, 4, 100)]),
            "too_large",
            "the picture has 11 x 100 pixels",
        ),
    ],
)
def test_a_picture_that_is_not_sound_is_refused(
    kind: str, data: bytes, code: str, message: str
) -> None:
    with pytest.raises(Refused) as refused:
        examine_picture._CHECKS[kind](data, _BOUNDS)  # noqa: SLF001
    assert (refused.value.code, str(refused.value)) == (code, message)


@pytest.mark.parametrize(
    ("data", "verdict"),
    [
        (_png(), {"passed": "png"}),
        (_png(tail=b"x"), {"refused": "trailing_data"}),
        (_png()[:20], {"refused": "damaged"}),
    ],
)
def test_the_verdict_is_printed_after_a_sign_of_life(
    monkeypatch: pytest.MonkeyPatch, data: bytes, verdict: dict[str, str]
) -> None:
    printed = io.StringIO()
    monkeypatch.setattr(sys, "argv", ["x", "png", json.dumps(_BOUNDS)])
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    monkeypatch.setattr(sys, "stdout", printed)
    examine_picture.main()
    ready, answer = printed.getvalue().split("\n")
    assert ready == "READY"
    assert json.loads(answer).items() >= verdict.items()


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (MemoryError(), "over_limits", "reading the picture takes too much memory"),
        (struct.error("x" * 400), "damaged", "the picture is cut short: " + "x" * 274),
    ],
)
def test_a_check_that_fails_is_a_verdict_too(
    monkeypatch: pytest.MonkeyPatch, error: Exception, code: str, message: str
) -> None:
    def fail(*_: Any) -> None:
        raise error

    printed = io.StringIO()
    monkeypatch.setitem(examine_picture._CHECKS, "png", fail)  # noqa: SLF001
    monkeypatch.setattr(sys, "argv", ["x", "png", "{}"])
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO()))
    monkeypatch.setattr(sys, "stdout", printed)
    examine_picture.main()
    found = json.loads(printed.getvalue().partition("\n")[2])
    assert found == {"refused": code, "message": message}

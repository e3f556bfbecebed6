"""The security check: judged by the bytes, with a stable code for each reason."""

import struct
import zlib

import pytest

from trunkline.profiles.clinical.handlers import security
from trunkline.profiles.clinical.handlers.problems import Rejected
from trunkline.profiles.clinical.handlers.security import screen
from trunkline.profiles.clinical.stubs.scans import report_lines, typeset

PDF = typeset(report_lines(1))


def png(width: int = 2, height: int = 2, *, tail: bytes = b"") -> bytes:
    def chunk(name: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(b"".join(b"\0" + b"\xff" * 2 for _ in range(2)))
    parts = chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts + tail


def jpeg(width: int = 8, height: int = 8) -> bytes:
    frame = struct.pack(">BHH", 8, height, width) + b"\x01\x01\x11\x00"
    application = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0" + b"\0" * 9
    start = b"\xff\xc0" + struct.pack(">H", 2 + len(frame)) + frame
    return b"\xff\xd8" + application + start + b"\xff\xd9"


def tiff(width: int = 8, height: int = 8, order: str = "<") -> bytes:
    mark = b"II*\0" if order == "<" else b"MM\0*"
    entries = [(256, 3, 1, width), (257, 4, 1, height)]
    body = struct.pack(f"{order}H", len(entries))
    for tag, kind, count, value in entries:
        body += struct.pack(f"{order}HHI", tag, kind, count)
        body += (
            struct.pack(f"{order}HH", value, 0) if kind == 3 else struct.pack(f"{order}I", value)
        )
    return mark + struct.pack(f"{order}I", 8) + body


def with_catalog(more: bytes) -> bytes:
    return PDF.replace(b"/Type /Catalog", b"/Type /Catalog " + more)


def packed(objects: bytes, *, head: bytes = b"/Type /ObjStm /Filter /FlateDecode") -> bytes:
    """A PDF with these objects in a compressed stream."""
    data = zlib.compress(objects) if b"Flate" in head else objects
    stream = b"9 0 obj\n<< %s /Length %d >>\nstream\n%s\nendstream\nendobj\n" % (
        head,
        len(data),
        data,
    )
    return PDF.replace(b"xref\n", stream + b"xref\n", 1)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PDF, "application/pdf"),
        (packed(b"<< /Type /Page >>"), "application/pdf"),
        (png(), "image/png"),
        (jpeg(), "image/jpeg"),
        (tiff(), "image/tiff"),
        (tiff(order=">"), "image/tiff"),
    ],
)
def test_what_is_sound_passes(data: bytes, kind: str) -> None:
    """CP-09: with its real type, size and hash."""
    found = screen(data, {"mime_type": kind, "size_bytes": len(data)})
    assert (found.media_type, found.size) == (kind, len(data))
    assert screen(data, {"sha256": found.sha256}) == found


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "empty_file"),
        (b"MZ\x90\0" + b"\0" * 100, "unknown_type"),
        (b"<html><script>", "unknown_type"),
        (b"PK\x03\x04", "unknown_type"),
        (PDF[:-40], "damaged"),
        (with_catalog(b"/OpenAction << /S /JavaScript /JS (x) >>"), "active_content"),
        (with_catalog(b"/OpenAction << /S /Java#53cript /JS (x) >>"), "active_content"),
        (with_catalog(b"/OpenAction << /S /Launch /F (cmd.exe) >>"), "active_content"),
        (with_catalog(b"/Names << /EmbeddedFiles 9 0 R >>"), "active_content"),
        (packed(b"<< /S /JavaScript /JS (x) >>"), "active_content"),
        (packed(b"<< /S /Java#53cript >>"), "active_content"),
        (packed(b"x", head=b"/Type /ObjStm /Filter [/LZWDecode /FlateDecode]"), "unreadable"),
        (packed(b"x").replace(b"stream\nx\x9c", b"stream\n??"), "damaged"),
        (PDF.replace(b"/Root", b"/Encrypt 8 0 R /Root"), "encrypted"),
        (png()[:-5], "damaged"),
        (png().replace(b"IDAT", b"IDAX"), "damaged"),
        (png(tail=b"PK\x03\x04"), "trailing_data"),
        (png(100_000, 100_000), "too_large"),
        (png(0, 5), "damaged"),
        (jpeg(65_000, 65_000), "too_large"),
        (jpeg()[:-2], "damaged"),
        (b"\xff\xd8\xff\xd9" + b"\0" * 20 + b"\xff\xd9", "damaged"),
        (tiff(50_000, 50_000), "too_large"),
        (tiff()[:12], "damaged"),
    ],
)
def test_what_is_not_sound_is_refused(data: bytes, code: str) -> None:
    """CP-09: with a code that stays."""
    with pytest.raises(Rejected) as error:
        screen(data)
    assert error.value.code == code


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        ({"mime_type": "application/pdf"}, "type_mismatch"),
        ({"size_bytes": 1}, "size_mismatch"),
        ({"sha256": "0" * 64}, "hash_mismatch"),
    ],
)
def test_what_the_uploader_said_must_be_true(facts: dict[str, object], code: str) -> None:
    with pytest.raises(Rejected) as error:
        screen(png(), facts)
    assert error.value.code == code


def test_a_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small file that fills the memory when it is unpacked is refused before it does."""
    bomb = packed(b"\0" * 1_000_000)
    assert screen(bomb).kind == "pdf"
    monkeypatch.setattr(security, "_LARGEST_INFLATED", 10_000)
    with pytest.raises(Rejected, match="too large when it is unpacked"):
        screen(bomb)
    monkeypatch.setattr(security, "LARGEST", 100)
    with pytest.raises(Rejected, match="the largest is 100"):
        screen(png(tail=b"x" * 100))

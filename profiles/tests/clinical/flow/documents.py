"""Generates documents: ordinary and malicious ones."""

import struct
import zlib
from collections.abc import Collection, Mapping

from trunkline_profiles.clinical.stubs.scans import report_lines, typeset

PDF = typeset(report_lines(1))
CATALOG = b"<< /Type /Catalog /Pages 2 0 R >>"
PAGES = b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>"
PAGE = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] >>"
SCRIPT = b"<< /S /JavaScript /JS (app.alert(1)) >>"


def pdf(
    objects: Mapping[int, bytes] | None = None,
    *,
    trailer: bytes = b"",
    headers: Mapping[int, bytes] | None = None,
    free: Collection[int] = (),
) -> bytes:
    """A PDF of one empty page; objects replace those with their number or are added.

    ``headers`` replaces the headers of these objects; ``free`` ones are missing in the table.
    """
    bodies = {1: CATALOG, 2: PAGES, 3: PAGE, **(objects or {})}
    data, places = bytearray(b"%PDF-1.7\n"), {}
    for number, body in sorted(bodies.items()):
        if number not in free:
            places[number] = len(data)
        header = (headers or {}).get(number, b"%d 0 obj" % number)
        data += b"%s\n%s\nendobj\n" % (header, body)
    table = len(data)
    data += b"xref\n0 %d\n0000000000 65535 f \n" % (max(bodies) + 1)
    for number in range(1, max(bodies) + 1):
        data += b"%010d %05d %s \n" % (
            places.get(number, 0),
            0 if number in places else 65535,
            b"n" if number in places else b"f",
        )
    data += b"trailer << /Size %d /Root 1 0 R %s >>\n" % (max(bodies) + 1, trailer)
    data += b"startxref\n%d\n%%%%EOF\n" % table
    return bytes(data)


def catalog(more: bytes, objects: Mapping[int, bytes] | None = None) -> bytes:
    """A PDF whose catalogue also has this."""
    return pdf({1: CATALOG[:-2] + more + b" >>", **(objects or {})})


def stream(body: bytes, head: bytes = b"", *, mark: bytes = b"stream\n") -> bytes:
    """An object with data."""
    return b"<< /Length %d %s >>\n%s%s\nendstream" % (len(body), head, mark, body)


def pack(
    bodies: Mapping[int, bytes],
    *,
    head: bytes = b"/Type /ObjStm /Filter /FlateDecode",
    mark: bytes = b"stream\n",
) -> bytes:
    """A stream that contains these objects."""
    index, content = b"", b""
    for number, body in bodies.items():
        index += b"%d %d " % (number, len(content))
        content += body + b" "
    data = index + content
    for _ in range(head.count(b"/FlateDecode")):
        data = zlib.compress(data)
    return stream(data, b"/N %d /First %d %s" % (len(bodies), len(index), head), mark=mark)


def packed_pdf(bodies: Mapping[int, bytes], holder: bytes, *, catalogue: bytes = b"") -> bytes:
    """A PDF whose table of contents is a stream, with objects in object 9."""
    bodies_in_file = {1: CATALOG[:-2] + catalogue + b" >>", 2: PAGES, 3: PAGE, 9: holder}
    data, places = bytearray(b"%PDF-1.7\n"), {}
    for number, body in bodies_in_file.items():
        places[number] = len(data)
        data += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = len(data)
    places[10] = table
    rows = bytearray()
    order = list(bodies)
    for number in range(max(*bodies, 10) + 1):
        if number in bodies:
            rows += struct.pack(">BIB", 2, 9, order.index(number))
        elif number in places:
            rows += struct.pack(">BIB", 1, places[number], 0)
        else:
            rows += struct.pack(">BIB", 0, 0, 0)
    head = b"/Type /XRef /W [1 4 1] /Root 1 0 R /Size %d" % (len(rows) // 6)
    data += b"10 0 obj\n%s\nendobj\nstartxref\n%d\n%%%%EOF\n" % (stream(bytes(rows), head), table)
    return bytes(data)


def updated(data: bytes, objects: Mapping[int, bytes]) -> bytes:
    """The PDF with an incremental update after its end."""
    before = data.rfind(b"startxref")
    previous = int(data[before:].split()[1])
    added, places = bytearray(data), {}
    for number, body in objects.items():
        places[number] = len(added)
        added += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = len(added)
    added += b"xref\n"
    for number, place in places.items():
        added += b"%d 1\n%010d 00000 n \n" % (number, place)
    added += b"trailer << /Size 99 /Root 1 0 R /Prev %d >>\nstartxref\n%d\n%%%%EOF\n" % (
        previous,
        table,
    )
    return bytes(added)


def chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def png(
    width: int = 2,
    height: int = 2,
    *,
    rows: bytes | None = None,
    more: bytes = b"",
    tail: bytes = b"",
) -> bytes:
    """A grey picture; rows are its unpacked data."""
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    if rows is None:
        rows = b"".join(b"\0" + b"\xff" * 2 for _ in range(2))
    data = chunk(b"IDAT", zlib.compress(rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + more + data + chunk(b"IEND", b"") + tail


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

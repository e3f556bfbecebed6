"""Examine one PDF and print a verdict as JSON; run as a script in a process with limits.

``python -I -S examine_pdf.py BOUNDS FOLDER`` reads the document from standard input. FOLDER
contains pypdf. Only pypdf and the standard library are imported, and the process has no secrets.
Each object of a PDF is checked twice: as pypdf parses it, and by the names in its raw bytes. A
reader that repairs a broken object may drop a key that another reader still sees.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import zlib
from bisect import bisect_left
from collections.abc import Mapping
from io import BytesIO
from typing import Any, Final


class Refused(Exception):
    """The document is refused."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


# Names that occur only in a document that can act by itself or that carries another file. They
# count anywhere, as a key or as a value.
_ALIVE: Final = frozenset(
    (
        *("JS", "JavaScript", "Launch", "SubmitForm", "ImportData", "GoToR", "GoToE", "Rendition"),
        *("RichMedia", "RichMediaContent", "RichMediaSettings", "RichMediaExecute", "XFA"),
        *("EmbeddedFile", "EmbeddedFiles"),
    )
)
# These may also name a font or a kind of paragraph, so they count only in the right position.
_ALIVE_KEYS: Final = frozenset({"/EF", "/RF", "/3DD", "/Collection"})
_ALIVE_ACTIONS: Final = frozenset({"/Movie", "/Sound", "/GoTo3DView"})
_ALIVE_SUBTYPES: Final = frozenset({"/3D", "/Movie", "/Sound", "/Screen", "/FileAttachment"})
# Actions that may run without a click when a document or a page is opened.
_QUIET_ACTIONS: Final = frozenset({"/GoTo", "/Named", "/SetOCGState", "/Hide", "/Trans", "/Thread"})
_BOXES: Final = ("/MediaBox", "/CropBox", "/BleedBox", "/TrimBox", "/ArtBox")

# The header of an object. A comment may stand between its parts, but a reader that repairs a file
# may also find a header within a comment, so search for both spellings.
_OBJECT: Final = re.compile(rb"(?<![0-9])[0-9]++[\0\t\n\f\r ]++[0-9]++[\0\t\n\f\r ]*+obj")
_COMMENTED_OBJECT: Final = re.compile(
    rb"(?<![0-9])[0-9]++(?:[\0\t\n\f\r ]|%[^\r\n]*+[\r\n])++"
    rb"[0-9]++(?:[\0\t\n\f\r ]|%[^\r\n]*+[\r\n])*+obj"
)
_BLANK: Final = re.compile(rb"(?:[\0\t\n\f\r ]|%[^\r\n]*+[\r\n])*+")
_TRAILER: Final = re.compile(rb"trailer[\0\t\n\f\r ]*(?=<<)")
# A name, a construct that can contain a name, or the start or end of an object.
_TOKEN: Final = re.compile(
    rb"/([^\0\t\n\f\r ()<>\[\]{}/%]*)|\(|%[^\r\n]*|<<|>>|<[^<>]*>|\b(?:endobj|stream)\b"
    rb"|(?<![A-Za-z])obj(?![A-Za-z])"
)
# Not a name: no name contains a space.
_HEADER: Final = " obj"
_IN_STRING: Final = re.compile(rb"\\.|[()]", re.DOTALL)
_ESCAPED: Final = re.compile(rb"#([0-9A-Fa-f]{2})")


def names(data: bytes, at: int, end: int, *, whole: bool = False) -> set[str]:
    """Return the names in this part of the data, outside of strings and comments.

    Stops at the stream or the end of the object, unless ``whole`` is set. A string may reach over
    the end of the part; the search goes on behind it. The word ``obj`` is returned as ``_HEADER``.
    """
    found, depth = set(), 0
    while (token := _TOKEN.search(data, at, end)) is not None:
        at = token.end()
        if token[1] is not None:
            plain = _ESCAPED.sub(lambda byte: bytes([int(byte[1], 16)]), token[1])
            found.add(plain.decode("latin-1"))
        elif token[0] == b"(":
            at = _after_string(data, at)
            if at > end:
                following = _OBJECT.search(data, at)
                end = len(data) if following is None else following.start()
        elif token[0] == b"obj":
            found.add(_HEADER)
        elif token[0] in {b"<<", b">>"}:
            depth += 1 if token[0] == b"<<" else -1
        elif token[0] in {b"endobj", b"stream"} and depth <= 0 and not whole:
            break
    return found


def _after_string(data: bytes, at: int) -> int:
    depth = 1
    while (mark := _IN_STRING.search(data, at)) is not None:
        at = mark.end()
        depth += {b"(": 1, b")": -1}.get(mark[0], 0)
        if depth == 0:
            return at
    return len(data)


_repairs: Final[list[str]] = []


class _Repairs(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        _repairs.append(record.msg)


def _refuse_alive(spelled: set[str]) -> None:
    if alive := sorted(spelled & _ALIVE):
        raise Refused("active_content", f"the PDF has /{alive[0]}")


class Pdf:
    """One PDF: every object in the file, whether a table of contents lists it or not."""

    def __init__(self, data: bytes, bounds: Mapping[str, Any]) -> None:
        self._data = data
        self._bounds = bounds
        self._inflated = 0

    def check(self) -> None:
        """Refuse a document that is damaged, encrypted, active or too large."""
        if b"%%EOF" not in self._data[-2048:]:
            raise Refused("damaged", "the PDF has no end")
        for trailer in _TRAILER.finditer(self._data):
            self._refuse_encrypted(names(self._data, trailer.end(), len(self._data)))
        from pypdf import PdfReader  # noqa: PLC0415
        from pypdf.errors import PyPdfError  # noqa: PLC0415

        try:
            self._stream = BytesIO(self._data)
            self._reader = PdfReader(self._stream)
            if self._reader.is_encrypted:
                raise Refused("encrypted", "the PDF is encrypted and cannot be examined")
            self._check_objects()
            self._check_value(self._reader.trailer)
            self._check_pages()
        except (PyPdfError, ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
            raise Refused("damaged", f"the PDF cannot be read: {error}") from error
        except (NotImplementedError, AssertionError, zlib.error, RecursionError) as error:
            raise Refused("unreadable", f"the PDF cannot be examined: {error}") from error

    @staticmethod
    def _refuse_encrypted(spelled: set[str]) -> None:
        if "Encrypt" in spelled:
            raise Refused("encrypted", "the PDF is encrypted and cannot be examined")

    def _check_objects(self) -> None:
        """Check every object that has a header or an entry in the table of contents."""
        headers = {
            header.end(): header.start()
            for pattern in (_OBJECT, _COMMENTED_OBJECT)
            for header in pattern.finditer(self._data)
        }
        starts = sorted(headers.values())

        def following(at: int) -> int:
            place = bisect_left(starts, at)
            return starts[place] if place < len(starts) else len(self._data)

        self._check_between(0, following(0))
        covered = 0
        for at in sorted(headers):
            # What looks like a header may be part of a stream, and so may be what comes after it.
            after = self._check_object(at, following(at))
            covered = max(covered, after)
            self._check_between(covered, following(at))
        for generation, entries in self._reader.xref.items():
            free = self._reader.xref_free_entry.get(generation, {})
            for number, offset in entries.items():
                if free.get(number, False) or not 0 < offset < len(self._data):
                    continue
                start = _BLANK.match(self._data, offset).end()  # type: ignore[union-attr]
                header = _COMMENTED_OBJECT.match(self._data, start)
                if header is None:
                    self._check_between(start, following(start))
                elif header.end() not in headers:
                    self._check_object(header.end(), following(header.end()))

    def _check_between(self, at: int, end: int) -> None:
        """Check bytes that belong to no object: another reader may find one there."""
        if at >= end:
            return
        spelled = names(self._data, at, end, whole=True)
        _refuse_alive(spelled)
        if _HEADER in spelled:
            raise Refused("damaged", "an object of the PDF has a header that cannot be read")

    def _check_object(self, at: int, end: int) -> int:
        """Check the bytes between one object header and the next; return where the object ends."""
        from pypdf.errors import PyPdfError  # noqa: PLC0415
        from pypdf.generic import StreamObject  # noqa: PLC0415

        value = None
        _repairs.clear()
        try:
            value = self._read(self._stream, self._data, at)
        except (PyPdfError, ValueError, TypeError, KeyError, AttributeError) as error:
            _repairs.append(str(error))
        after = end if _repairs else self._stream.tell()
        # Search the whole part if the reader had to repair it.
        spelled = names(self._data, at, end, whole=bool(_repairs))
        _refuse_alive(spelled)
        if "XRef" in spelled:
            self._refuse_encrypted(spelled)
        self._check_value(value)
        # Some readers ignore the type of an object stream, but all of them need /First.
        if isinstance(value, StreamObject) and spelled & {"ObjStm", "First"}:
            self._check_packed(value)
        elif "ObjStm" in spelled:
            raise Refused("unreadable", "a stream of objects cannot be examined")
        return after

    def _read(self, stream: BytesIO, data: bytes, at: int) -> Any:
        from pypdf.generic import read_object  # noqa: PLC0415

        while data[at : at + 1] in {b"\0", b"\t", b"\n", b"\f", b"\r", b" "}:
            at += 1
        stream.seek(at)
        return read_object(stream, self._reader)

    def _check_packed(self, stream: Any) -> None:
        from pypdf.errors import LimitReachedError, PyPdfError  # noqa: PLC0415

        try:
            data = bytes(stream.get_data())
        except LimitReachedError as error:
            raise Refused("too_large", "the PDF is too large when it is unpacked") from error
        except (PyPdfError, zlib.error, ValueError) as error:
            raise Refused("damaged", f"a stream of the PDF cannot be unpacked: {error}") from error
        self._inflated += len(data)
        if self._inflated > self._bounds["inflated"]:
            raise Refused("too_large", "the PDF is too large when it is unpacked")
        if not data.strip():
            raise Refused("damaged", "a stream of objects of the PDF is empty")
        # Search all bytes: the offsets in the header may be wrong on purpose.
        spelled = names(data, 0, len(data), whole=True)
        _refuse_alive(spelled)
        if "ObjStm" in spelled:
            raise Refused("unreadable", "streams of objects are nested")
        first = _plain(stream.get("/First"))
        if not isinstance(first, int) or not 0 <= first <= len(data):
            return
        unpacked = BytesIO(data)
        head = data[:first].split()
        for number in head[1::2]:
            if number.isdigit() and first + int(number) < len(data):
                self._check_value(self._read(unpacked, data, first + int(number)))

    def _check_value(self, value: Any) -> None:
        """Check a value and its contents, without following references: all objects are checked."""
        from pypdf.generic import ArrayObject, DictionaryObject, NameObject  # noqa: PLC0415

        left = [value]
        while left:
            part = left.pop()
            if isinstance(part, NameObject):
                _refuse_alive({str(part)[1:]})
            elif isinstance(part, DictionaryObject):
                self._check_dictionary(part)
                left.extend(part.values())
            elif isinstance(part, ArrayObject):
                left.extend(part)

    def _check_dictionary(self, part: Any) -> None:
        _refuse_alive({str(key)[1:] for key in part})
        kind, action = _plain(part.get("/Subtype")), _plain(part.get("/S"))
        alive = [key for key in part if key in _ALIVE_KEYS]
        alive += [action] if action in _ALIVE_ACTIONS else []
        alive += [kind] if kind in _ALIVE_SUBTYPES else []
        if alive:
            raise Refused("active_content", f"the PDF has {alive[0]}")
        for trigger in ("/OpenAction", "/AA"):
            if trigger in part:
                self._check_automatic(trigger, part[trigger])
        self._check_boxes(part)
        if kind == "/Image":
            pixels = _number(part.get("/Width", 0)) * _number(part.get("/Height", 0))
            if pixels > self._bounds["pixels"]:
                raise Refused("too_large", f"a picture of the PDF has {pixels:.0f} pixels")

    def _check_automatic(self, trigger: str, value: Any) -> None:
        """Refuse automatic actions that do more than move around in the document."""
        from pypdf.generic import ArrayObject, DictionaryObject  # noqa: PLC0415

        left, seen = [value], set()
        while left:
            part = _plain(left.pop())
            if id(part) in seen:
                continue
            seen.add(id(part))
            # If the value itself is an array, it is a destination in the document.
            if isinstance(part, ArrayObject) and len(seen) > 1:
                left.extend(part)
            elif isinstance(part, DictionaryObject):
                action = _plain(part.get("/S"))
                if action is not None and action not in _QUIET_ACTIONS:
                    raise Refused("active_content", f"the PDF has {trigger} with {action}")
                left.extend(part.values() if action is None else [part.get("/Next")])

    def _check_boxes(self, part: Any) -> None:
        unit = _number(part.get("/UserUnit", 1))
        for name in _BOXES:
            if isinstance(_plain(part.get(name)), list):
                self._check_page_size(_size(part[name]), unit)

    def _check_page_size(self, size: tuple[float, float], unit: float) -> float:
        """Refuse a page that is larger than allowed; return its pixels when it is rasterised."""
        width, height = (side * max(unit, 1.0) for side in size)
        pixels: float = width * height * (self._bounds["dots_per_inch"] / 72) ** 2
        most = self._bounds["points"]
        # Not inverted, so that NaN fails every comparison and is refused.
        if not (width <= most and height <= most and pixels <= self._bounds["page_pixels"]):
            raise Refused("too_large", f"a page of the PDF has {width:g} x {height:g} points")
        return pixels

    def _check_pages(self) -> None:
        """Count pages and their pixels: boxes are inherited from the nodes of the tree."""
        pages, pixels = 0, 0.0
        root = self._reader.root_object.get("/Pages")
        left: list[tuple[Any, Any]] = [] if root is None else [(root, None)]
        seen: set[int] = set()
        while left:
            reference, inherited = left.pop()
            node = _plain(reference)
            if not hasattr(node, "get"):
                raise Refused("damaged", "the page tree of the PDF has an entry that is not a page")
            box = node.get("/MediaBox", inherited)
            if "/Kids" in node:
                if id(node) in seen:
                    raise Refused("damaged", "the page tree of the PDF has a cycle")
                seen.add(id(node))
                left.extend((kid, box) for kid in _plain(node["/Kids"]))
                continue
            pages += 1
            size = (612.0, 792.0) if box is None else _size(box)
            pixels += self._check_page_size(size, _number(node.get("/UserUnit", 1)))
            if pages > self._bounds["pages"]:
                raise Refused("too_large", f"the PDF has more than {self._bounds['pages']} pages")
        if pages == 0:
            raise Refused("damaged", "the PDF has no pages")
        if pixels > self._bounds["total_pixels"]:
            raise Refused("too_large", f"the pages of the PDF have {pixels:.0f} pixels together")


def _size(box: Any) -> tuple[float, float]:
    left, bottom, right, top = (_number(side) for side in _plain(box))
    return abs(right - left), abs(top - bottom)


def _number(value: Any) -> float:
    return float(_plain(value))


def _plain(value: Any) -> Any:
    """Return the object that a reference points to."""
    return value.get_object() if hasattr(value, "get_object") else value


def main() -> None:
    """Print READY once the reader is loaded, then the verdict.

    An error before READY is the installation's fault, not the document's.
    """
    bounds, folder = sys.argv[1:3]
    sys.path.append(folder)
    # The reader logs a line for each repair. Only the fact that there was one matters.
    logger = logging.getLogger("pypdf")
    logger.propagate = False
    logger.addHandler(_Repairs())
    # Optional dependencies of the reader that no check needs.
    for unneeded in ("cryptography", "Crypto", "PIL"):
        sys.modules[unneeded] = None  # type: ignore[assignment]
    import pypdf  # noqa: F401, PLC0415

    sys.stdout.write("READY\n")
    sys.stdout.flush()
    verdict = _verdict(json.loads(bounds))
    sys.stdout.write(json.dumps({name: text[:300] for name, text in verdict.items()}))


def _verdict(bounds: dict[str, Any]) -> dict[str, str]:
    try:
        Pdf(sys.stdin.buffer.read(), bounds).check()
    except Refused as refusal:
        return {"refused": refusal.code, "message": str(refusal)}
    except MemoryError:
        return {"refused": "over_limits", "message": "reading the PDF takes too much memory"}
    return {"passed": "pdf"}


if __name__ == "__main__":
    main()

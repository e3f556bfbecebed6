"""The security check: a file's real type, its integrity, and the absence of active content.

A document is judged by its bytes. The type and size that the uploader stated matter only if they
are wrong. This process reads only the first bytes. A child process with limits examines documents;
one that makes the child crash or reach a limit is refused.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import json
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from trunkline_profiles.clinical.handlers import examine_pdf, examine_picture
from trunkline_profiles.clinical.handlers.bounded import Ended, Limits, run
from trunkline_profiles.clinical.handlers.problems import CannotRun, Rejected

__all__ = ["DOTS_PER_INCH", "LARGEST", "LIMITS", "MOST_PAGES", "Bounds", "Screened"]
__all__ += ["identify", "missing", "screen"]

LARGEST: Final = 50 << 20
MOST_PAGES: Final = 50
# Resolution of pages that are rasterised for OCR.
DOTS_PER_INCH: Final = 150
# The reader takes half a second for an ordinary document of 10 MB.
LIMITS: Final = Limits(cpu=30, wall=300.0, memory=1024, output=64 << 10)
_INSTALL: Final = "pip install 'trunkline-profiles[clinical]'"

_MAGIC: Final[tuple[tuple[bytes, str], ...]] = (
    (b"%PDF-", "pdf"),
    (b"\x89PNG\r\n\x1a\n", "png"),
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


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds on the content of a document: a small file can contain a page of any size."""

    # A picture: A3 at 600 dots per inch, and the longest side that tesseract accepts.
    pixels: int = 80_000_000
    side: int = 32_767
    # A page of a PDF: one side in points, and its area when it is rasterised. A0 fits.
    points: int = 7_200
    page_pixels: int = 40_000_000
    dots_per_inch: int = DOTS_PER_INCH
    # All pages of a PDF.
    pages: int = MOST_PAGES
    total_pixels: int = 256_000_000
    # Bytes of packed objects after unpacking.
    inflated: int = 64 << 20


@dataclass(frozen=True, slots=True)
class Screened:
    """The facts about a file that passed the check."""

    kind: str
    media_type: str
    size: int
    sha256: str


def missing() -> str | None:
    """Return what must be installed to examine documents here; does not import the library."""
    if importlib.util.find_spec("pypdf") is None:
        return "pypdf"
    return None


def identify(data: bytes, facts: Mapping[str, Any] | None = None) -> Screened:
    """Return the type of a file by its first bytes alone, or raise Rejected."""
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
    return Screened(kind, _MEDIA[kind], len(data), digest)


async def screen(
    data: bytes,
    facts: Mapping[str, Any] | None = None,
    *,
    bounds: Bounds | None = None,
    limits: Limits = LIMITS,
) -> Screened:
    """Return the facts about a file, or raise Rejected with a stable code.

    Raises CannotRun if this installation cannot examine any document.
    """
    screening = await asyncio.to_thread(identify, data, facts)
    ended = await _examine(screening.kind, data, bounds or Bounds(), limits)
    refused = _refusal(ended)
    if refused is not None:
        raise Rejected(*refused)
    return screening


def _compare(facts: Mapping[str, Any], kind: str, size: int, digest: str) -> None:
    media_type = facts.get("mime_type")
    if media_type is not None and media_type != _MEDIA[kind]:
        raise Rejected("type_mismatch", f"the file is {_MEDIA[kind]} and not {media_type}")
    if facts.get("size_bytes", size) != size:
        raise Rejected("size_mismatch", f"the file has {size} bytes, not {facts['size_bytes']}")
    if facts.get("sha256", digest) != digest:
        raise Rejected("hash_mismatch", "the file is not the one that was uploaded")


async def _examine(kind: str, data: bytes, bounds: Bounds, limits: Limits) -> Ended:
    arguments = [json.dumps(asdict(bounds))]
    if kind == "pdf":
        program = [examine_pdf.__file__, *arguments, _folder_of_pypdf()]
    else:
        program = [examine_picture.__file__, kind, *arguments]
    with tempfile.TemporaryFile() as source:
        await asyncio.to_thread(_fill, source, data)
        # Empty environment: the child gets no provider keys and no database password.
        return await run(
            [sys.executable, "-I", "-S", *program],
            folder=Path("/"),
            limits=limits,
            environment={},
            source=source,
        )


def _fill(source: Any, data: bytes) -> None:
    source.write(data)
    source.seek(0)


def _folder_of_pypdf() -> str:
    spec = importlib.util.find_spec("pypdf")
    if spec is None or spec.origin is None:
        raise CannotRun(f"pypdf is not installed: {_INSTALL}")
    return str(Path(spec.origin).parent.parent)


def _refusal(ended: Ended) -> tuple[str, str] | None:
    """Code and message, or None if the document passed."""
    ready, _, printed = ended.printed.partition(b"\n")
    if ready != b"READY":
        # The child failed before it read the document.
        raise CannotRun(
            f"examining files ended with {ended.code} before it began: {ended.complaint[-200:]}."
            f" Install what it needs again: {_INSTALL}"
        )
    if ended.over_limits is not None:
        return "over_limits", f"examining the file took more than {ended.over_limits}"
    if ended.code != 0:
        # The child catches expected errors, so this document broke its reader.
        return "unreadable", f"examining the file ended with {ended.code}: {ended.complaint[-200:]}"
    try:
        verdict = json.loads(printed)
    except ValueError:
        verdict = None
    match verdict:
        case {"refused": str(code), "message": str(message)}:
            return code, message
        case {"passed": _}:
            return None
    return "unreadable", "examining the file returned no verdict"

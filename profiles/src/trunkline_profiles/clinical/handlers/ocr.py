"""Reads words and their positions: pages are rasterised, then tesseract reads them."""

from __future__ import annotations

import asyncio
import struct
import tempfile
from pathlib import Path
from typing import Final

from trunkline_profiles.clinical.handlers.bounded import Limits
from trunkline_profiles.clinical.handlers.problems import BadDocument
from trunkline_profiles.clinical.handlers.security import DOTS_PER_INCH, MOST_PAGES
from trunkline_profiles.clinical.handlers.tools import Tools, run

__all__ = ["read"]

# For all pages of one document. pdftoppm needs 90 MiB for the largest page that passes the check.
_LIMITS: Final = Limits(cpu=300, wall=1800.0, memory=512)


async def read(tools: Tools, kind: str, data: bytes) -> list[str]:
    """The tables of words that tesseract writes, one per page."""
    if tools.missing:
        raise BadDocument(f"This worker cannot read documents: {', '.join(tools.missing)}")
    with tempfile.TemporaryDirectory(prefix="trunkline-ocr-") as name:
        folder = Path(name)
        await asyncio.to_thread((folder / "document").write_bytes, data)
        pages = await (_of_pdf if kind == "pdf" else _of_picture)(tools, kind, folder)
        tables = []
        for page in pages:
            command = [str(tools.tesseract), page.name, "stdout", "-l", "eng", "--psm", "3", "tsv"]
            tables.append((await run(command, folder=folder)).decode(errors="replace"))
        return tables


async def _of_pdf(tools: Tools, _kind: str, folder: Path) -> list[Path]:
    last = str(MOST_PAGES + 1)
    size = ["-r", str(DOTS_PER_INCH), "-gray", "-png", "-l", last]
    command = [str(tools.pdftoppm), *size, "document", "page"]
    await run(command, folder=folder, limits=_LIMITS)
    pages = sorted(folder.glob("page-*.png"))
    if not pages:
        raise BadDocument("The PDF has no pages")
    if len(pages) > MOST_PAGES:
        raise BadDocument(f"The PDF has more than {MOST_PAGES} pages")
    for page in pages:
        # The message of pdftoppm, with exit code 0, for a page that does not fit into its memory.
        with page.open("rb") as picture:
            width, height = struct.unpack(">II", picture.read(24)[16:])
        if (width, height) == (1, 1):
            raise BadDocument(f"over_limits: pdftoppm ran out of memory at {page.stem}")
    return pages


async def _of_picture(tools: Tools, kind: str, folder: Path) -> list[Path]:
    # The format is stated, so the program does not guess it from the bytes. Photos are turned
    # upright.
    even = ["-auto-orient", "-colorspace", "Gray", "-depth", "8", "-strip"]
    bounds = ["-limit", "memory", "512MiB", "-limit", "disk", "1GiB"]
    source = f"{kind}:document[0]"
    await run([str(tools.magick), *bounds, source, *even, "png:page-1.png"], folder=folder)
    return [folder / "page-1.png"]

"""The finished file: its metadata, and how many pages and bytes it really has."""

from __future__ import annotations

import re
from io import BytesIO
from typing import Final, NamedTuple

from trunkline_profiles.exports.handlers.problems import RenderFailed

__all__ = ["CREATOR", "Pages", "finished", "safe_name"]

CREATOR: Final = "Trunkline"
_UNSAFE: Final = re.compile(
    r'[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069/\\:*?"<>|]+'
)


class Pages(NamedTuple):
    """A PDF with what was measured."""

    content: bytes
    number: int


def finished(content: bytes, *, title: str, author: str) -> Pages:
    """Return the file with its metadata, and its number of pages."""
    from pypdf import PdfReader, PdfWriter  # noqa: PLC0415 - an extra, and only workers need it
    from pypdf.errors import PyPdfError  # noqa: PLC0415

    try:
        writer = PdfWriter(clone_from=PdfReader(BytesIO(content)))
        count = len(writer.pages)
        writer.add_metadata(
            {
                "/Title": title,
                "/Author": author,
                "/Subject": "Resume",
                "/Keywords": "",
                "/Creator": CREATOR,
            }
        )
        written = BytesIO()
        writer.write(written)
    except PyPdfError as error:
        raise RenderFailed("the renderer returned no PDF") from error
    if count < 1:
        raise RenderFailed("the renderer returned no pages")
    return Pages(written.getvalue(), count)


def safe_name(title: str) -> str:
    """Return the name of a file for a title: no separators, no dots alone, at most 120 letters."""
    name = re.sub(r"\.{2,}", ".", _UNSAFE.sub("-", title)).strip(" .-")[:120].strip(" .-")
    return f"{name or 'export'}.pdf"

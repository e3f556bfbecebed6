"""The finished file: its metadata, and how many pages and bytes it really has."""

from __future__ import annotations

from io import BytesIO
from typing import Final, NamedTuple

from trunkline_profiles.exports.handlers.problems import RenderFailed

__all__ = ["CREATOR", "Pages", "finished"]

CREATOR: Final = "Trunkline"


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

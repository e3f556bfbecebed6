"""Pages: chapters set into PDF/A-2b by Typst, with all fonts inside the file."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import Final, Protocol

from trunkline_profiles.studio.handlers.chapter import Book
from trunkline_profiles.studio.handlers.problems import BadOrder

__all__ = ["Renderer", "TypstRenderer"]

_STANDARD: Final = "a-2b"
# Letters that Typst's own fonts do not have would be missing in the file, which PDF/A forbids.
_UNPRINTABLE: Final = re.compile(
    r"[^\t\n\u0020-\u024f\u0370-\u052f\u1e00-\u1fff\u2010-\u2026\u20ac]"
)


class Renderer(Protocol):
    """An adapter for a PDF engine."""

    def render(self, book: Book) -> bytes:
        """Return a PDF/A, with the same bytes for the same book."""
        ...


class TypstRenderer:
    """Typst, which brings its own fonts. Fonts of the system are not used: hosts differ."""

    def render(self, book: Book) -> bytes:
        """Return the pages of a book."""
        import typst  # noqa: PLC0415 - 77 MB, and only PDF workers need it

        # A literal question mark, because a character without a glyph would fail the whole file.
        text = json.dumps(
            {
                "title": _printable(book.title),
                "author": _printable(book.author),
                "day": [book.day.year, book.day.month, book.day.day],
                "chapters": [
                    {
                        "title": _printable(chapter.title),
                        "paragraphs": [_printable(one) for one in chapter.paragraphs],
                    }
                    for chapter in book.chapters
                ],
            }
        )
        source = (files(__package__) / "book.typ").read_bytes()
        try:
            pages: bytes = typst.compile(
                source,
                sys_inputs={"data": text},
                pdf_standards=[_STANDARD],
                ignore_system_fonts=True,
            )
        except typst.TypstError as error:
            raise BadOrder(f"The chapter cannot be set: {error}") from error
        return pages


def _printable(text: str) -> str:
    return _UNPRINTABLE.sub("?", text)

"""The layout of pages: lines of words, their positions, and the confidence of the OCR."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

import msgspec

from trunkline_profiles.clinical.handlers.problems import BadDocument

__all__ = ["Layout", "Line", "Page", "layout"]

_COLUMNS: Final = (
    *("level", "page_num", "block_num", "par_num", "line_num", "word_num"),
    *("left", "top", "width", "height", "conf", "text"),
)
_PAGE: Final = 1
_WORD: Final = 5


class Line(msgspec.Struct, frozen=True):
    """A line of text; its box is in fractions of the page, from the upper left corner."""

    text: str
    block: int
    box: tuple[float, float, float, float]
    confidence: float


class Page(msgspec.Struct, frozen=True):
    """A page with its lines in reading order."""

    number: int
    width: int
    height: int
    lines: tuple[Line, ...]


class Layout(msgspec.Struct, frozen=True):
    """A document as text with positions."""

    pages: tuple[Page, ...]

    @property
    def text(self) -> str:
        """All lines."""
        return "\n".join(line.text for page in self.pages for line in page.lines)

    @property
    def words(self) -> int:
        return len(self.text.split())

    @property
    def confidence(self) -> float:
        """The average confidence, from 0 to 100."""
        sure = [line.confidence for page in self.pages for line in page.lines]
        return round(sum(sure) / len(sure), 1) if sure else 0.0


class _Row(msgspec.Struct, frozen=True):
    level: int
    block: int
    line: tuple[int, int, int]
    box: tuple[int, int, int, int]
    confidence: float
    text: str


def layout(tables: Sequence[str]) -> Layout:
    """The layout from tesseract's tables, one per page."""
    return Layout(tuple(_page(number, table) for number, table in enumerate(tables, 1)))


def _page(number: int, table: str) -> Page:
    rows = list(_rows(table))
    try:
        _, _, width, height = next(row.box for row in rows if row.level == _PAGE)
    except StopIteration:
        raise BadDocument(f"The table of page {number} has no page") from None
    words = [row for row in rows if row.level == _WORD and row.text.strip()]
    lines = [_line(list(group), width, height) for _, group in groupby(words, lambda w: w.line)]
    return Page(number, width, height, tuple(lines))


def _line(words: list[_Row], width: int, height: int) -> Line:
    left, top = (min(word.box[side] for word in words) for side in (0, 1))
    right = max(word.box[0] + word.box[2] for word in words)
    bottom = max(word.box[1] + word.box[3] for word in words)
    return Line(
        text=" ".join(word.text.strip() for word in words),
        block=words[0].block,
        box=_shares((left, top, right, bottom), width, height),
        confidence=round(sum(word.confidence for word in words) / len(words), 1),
    )


def _shares(box: Iterable[int], width: int, height: int) -> tuple[float, float, float, float]:
    left, top, right, bottom = box
    return (
        round(left / width, 4),
        round(top / height, 4),
        round(right / width, 4),
        round(bottom / height, 4),
    )


def _rows(table: str) -> Iterator[_Row]:
    # These tables have no quoting; a quotation mark may be a word.
    reader = csv.reader(io.StringIO(table), delimiter="\t", quoting=csv.QUOTE_NONE)
    if tuple(next(reader, ())) != _COLUMNS:
        raise BadDocument("This is not a table of words")
    for fields in reader:
        try:
            level, _, block, paragraph, line, _, left, top, width, height = map(int, fields[:10])
            yield _Row(
                level,
                block,
                (block, paragraph, line),
                (left, top, width, height),
                float(fields[10]),
                fields[11],
            )
        except (ValueError, IndexError) as error:
            raise BadDocument("The table of words is damaged") from error

"""The values that tasks pass on: texts, and references to stored files."""

from __future__ import annotations

from datetime import date

import msgspec

from trunkline_profiles.studio.handlers.problems import StudioProblem

__all__ = ["Book", "Chapter", "StoredText", "decode", "encode"]


class Chapter(msgspec.Struct, frozen=True):
    """The text of one document."""

    title: str
    paragraphs: list[str]

    @property
    def words(self) -> int:
        return sum(len(paragraph.split()) for paragraph in self.paragraphs)


class Book(msgspec.Struct, frozen=True):
    """Chapters that are set into one PDF."""

    title: str
    author: str
    # Becomes part of the file; the day of the order, so that each attempt gives the same bytes.
    day: date
    chapters: list[Chapter]


class StoredText(msgspec.Struct, frozen=True):
    """The result of a text task: where its text is. The text itself is never in the database."""

    name: str
    path: str
    sha256: str
    bytes: int
    words: int


def encode(chapter: Chapter) -> bytes:
    """The content of a stored text, with the same bytes for the same chapter."""
    return msgspec.json.encode(chapter, order="sorted")


def decode(content: bytes) -> Chapter:
    """The chapter of a stored text."""
    try:
        return msgspec.json.decode(content, type=Chapter)
    except msgspec.DecodeError as error:
        raise StudioProblem(f"The stored text cannot be read: {error}") from error

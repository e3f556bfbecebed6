"""A résumé as the editor stores it: tolerant of what is missing, strict about what is text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from trunkline_profiles.exports.handlers.problems import BadDocument

__all__ = ["Entry", "Resume", "Section", "read_resume"]

# A résumé beyond this is none; the renderer's time and memory are bounded as well.
_LONGEST: Final = 2_000_000
_DEEPEST: Final = 500


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a section: a position, a school, a skill."""

    title: str = ""
    place: str = ""
    period: str = ""
    paragraphs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A section with its entries."""

    title: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Resume:
    """The content of one document."""

    title: str
    name: str
    headline: str = ""
    contact: tuple[str, ...] = ()
    summary: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()


def read_resume(title: str, author: str, data: Mapping[str, Any]) -> Resume:
    """Read the data of a document; unknown fields are left out."""
    resume = Resume(
        title=title,
        name=_text(data.get("name")) or author or title,
        headline=_text(data.get("headline")),
        contact=tuple(filter(None, map(_text, _list(data.get("contact"))))),
        summary=_paragraphs(data.get("summary")),
        sections=tuple(_section(one) for one in _list(data.get("sections"))),
    )
    if _size(resume) > _LONGEST:
        raise BadDocument("the document is too long for an export")
    return resume


def _section(data: Any) -> Section:
    fields = data if isinstance(data, Mapping) else {"entries": [data]}
    return Section(_text(fields.get("title")), tuple(map(_entry, _list(fields.get("entries")))))


def _entry(data: Any) -> Entry:
    if not isinstance(data, Mapping):
        return Entry(paragraphs=_paragraphs(data))
    return Entry(
        _text(data.get("title")),
        _text(data.get("place")),
        _text(data.get("period")),
        _paragraphs(data.get("text")),
    )


def _paragraphs(value: Any) -> tuple[str, ...]:
    texts = [_text(one) for one in _list(value)]
    return tuple(part.strip() for text in texts for part in text.split("\n\n") if part.strip())


def _list(value: Any) -> Sequence[Any]:
    if value is None:
        return ()
    found = value if isinstance(value, list) else [value]
    if len(found) > _DEEPEST:
        raise BadDocument(f"a list of the document has more than {_DEEPEST} entries")
    return found


def _text(value: Any) -> str:
    if value is None or isinstance(value, (Mapping, list)):
        return ""
    # Control characters are neither text nor valid in HTML.
    return "".join(c for c in str(value) if c in "\n\t" or c.isprintable()).strip()


def _size(resume: Resume) -> int:
    parts = [resume.title, resume.name, resume.headline, *resume.contact, *resume.summary]
    for section in resume.sections:
        parts.append(section.title)
        for entry in section.entries:
            parts += [entry.title, entry.place, entry.period, *entry.paragraphs]
    return sum(map(len, parts))

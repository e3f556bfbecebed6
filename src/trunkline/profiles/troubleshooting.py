"""Answers to what operators ask when jobs are stuck, come back too often or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from trunkline.errors import ProfileError
from trunkline.profiles.profile import Profile
from trunkline.profiles.sessions import session

__all__ = ["Answer", "troubleshoot"]


@dataclass(frozen=True, slots=True)
class Answer:
    """One question, the SQL that asks it and its rows by column."""

    title: str
    sql: str
    rows: tuple[dict[str, Any], ...]


def troubleshoot(
    dsn: str, profile: Profile, topic: str, *, schema: str | None = None
) -> tuple[Answer, ...]:
    """Ask all questions of a topic."""
    if topic not in profile.topics:
        known = ", ".join(profile.topics) or "none"
        raise ProfileError(f"Profile {profile.name} has no topic {topic!r}; it has: {known}")
    answers = []
    with session(dsn, profile, schema=schema) as opened:
        for title, question in profile.topics[topic]:
            text = opened.sql(question)
            cursor = opened.connection.execute(text.encode())
            names = [column.name for column in cursor.description or ()]
            rows = tuple(dict(zip(names, map(_plain, row), strict=True)) for row in cursor)
            answers.append(Answer(title, text, rows))
    return tuple(answers)


def _plain(value: Any) -> Any:
    """Numbers as JSON has them."""
    return float(value) if isinstance(value, Decimal) else value

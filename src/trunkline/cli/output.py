"""Text for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import click

from trunkline.model import Job
from trunkline.telemetry import UNSAFE, age, count, escaped_json, size

__all__ = [
    "STATE_STYLES",
    "age",
    "amount",
    "capped",
    "clean",
    "clean_lines",
    "count",
    "data",
    "job_data",
    "moment",
    "print_json",
    "relative",
    "shown_error",
    "size",
]

STATE_STYLES: Final = {
    "blocked": "magenta",
    "scheduled": "blue",
    "ready": "cyan",
    "running": "yellow",
    "completed": "green",
    "cancelled": "bright_black",
    "dead": "red bold",
}

# Fields of a job that lists leave out.
_DETAILS: Final = frozenset({"payload", "result", "errors", "crashes", "hard_deadline"})

# Characters that move the cursor or change how text is shown: payloads and errors may have them.
_UNSAFE: Final = {
    **dict.fromkeys(UNSAFE, "\N{REPLACEMENT CHARACTER}"),
    **dict.fromkeys(map(ord, "\n\r\t\N{LINE SEPARATOR}\N{PARAGRAPH SEPARATOR}"), " "),
}


def print_json(value: Any, *, err: bool = False) -> None:
    """Print one JSON document on one line and flush it, so that a reader of a stream gets it."""
    click.echo(escaped_json(json.dumps(data(value), ensure_ascii=False)), err=err)
    sys.stdout.flush()


def data(value: Any) -> Any:
    """Return a value as JSON has it: times in ISO 8601 and UTC, durations in seconds."""
    plain: Any = value
    match value:
        case datetime():
            plain = value.astimezone(UTC).isoformat()
        case date():
            plain = value.isoformat()
        case timedelta():
            plain = value.total_seconds()
        case Decimal():
            plain = int(value) if value == int(value) else float(value)
        case UUID():
            plain = str(value)
        case Job():
            plain = data(job_data(value))
        case Mapping():
            plain = {str(name): data(inner) for name, inner in value.items()}
        case tuple() if hasattr(value, "_asdict"):
            plain = data(value._asdict())
        case list() | tuple():
            plain = [data(inner) for inner in value]
    return plain


def job_data(job: Job, *, bodies: bool = True) -> dict[str, Any]:
    """Return a job under the engine's names; without bodies, the fields that lists have."""
    values = {field.name: getattr(job, field.name) for field in fields(job)}
    values = {"job_id": values.pop("id"), **values}
    if bodies:
        return values
    return {name: value for name, value in values.items() if name not in _DETAILS}


def clean(text: Any) -> str:
    """Return text as one line without anything that a terminal would obey."""
    return str(text).translate(_UNSAFE)


def clean_lines(text: Any) -> str:
    """Return the same for text of several lines."""
    return "\n".join(clean(line) for line in str(text).split("\n"))


def relative(at: datetime | None, now: datetime) -> str:
    """Format a time as how long ago it was, or in how long it is."""
    if at is None:
        return ""
    if abs(at - now) < timedelta(seconds=1):
        return "now"
    return f"in {age(at - now)}" if at > now else f"{age(now - at)} ago"


def moment(at: datetime | None, now: datetime | None = None) -> str:
    """Format a time in the zone of this machine, with how long ago it was."""
    if at is None:
        return ""
    text = at.astimezone().isoformat(sep=" ", timespec="seconds")
    return f"{text} ({relative(at, now)})" if now else text


def amount(number: int | None) -> str:
    """Format a number with separated thousands."""
    return "" if number is None else f"{number:,}"


def capped(number: int, most: int) -> str:
    """Format a number that was counted up to a bound: with a plus if it reached the bound."""
    return f"{number:,}+" if number >= most else f"{number:,}"


def shown_error(error: Mapping[str, Any] | None, reason: str | None = None) -> str:
    """Format the error of an attempt as one line."""
    if not error:
        return clean(reason or "")
    parts: Sequence[Any] = [error.get("type"), error.get("message")]
    text = ": ".join(str(part) for part in parts if part)
    return clean(text or json.dumps(data(error), ensure_ascii=False))

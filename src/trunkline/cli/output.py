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

from trunkline.db.calls.job_columns import LISTED
from trunkline.model import Job
from trunkline.telemetry import UNSAFE, escaped_json

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

# Whatever moves the cursor or changes how text is shown: it came from somebody's payload or error.
_UNSAFE: Final = {
    **dict.fromkeys(UNSAFE, "\N{REPLACEMENT CHARACTER}"),
    **dict.fromkeys(map(ord, "\n\r\t\N{LINE SEPARATOR}\N{PARAGRAPH SEPARATOR}"), " "),
}


def print_json(value: Any) -> None:
    """One JSON document on one line, flushed: a reader of a stream gets it at once."""
    click.echo(escaped_json(json.dumps(data(value), ensure_ascii=False)))
    sys.stdout.flush()


def data(value: Any) -> Any:
    """Make a value fit for JSON: times in ISO 8601 and UTC, lengths of time in seconds."""
    found: Any = value
    match value:
        case datetime():
            found = value.astimezone(UTC).isoformat()
        case date():
            found = value.isoformat()
        case timedelta():
            found = value.total_seconds()
        case Decimal():
            found = int(value) if value == int(value) else float(value)
        case UUID():
            found = str(value)
        case Job():
            found = data(job_data(value))
        case Mapping():
            found = {str(name): data(inner) for name, inner in value.items()}
        case tuple() if hasattr(value, "_asdict"):
            found = data(value._asdict())
        case list() | tuple():
            found = [data(inner) for inner in value]
    return found


def job_data(job: Job, *, bodies: bool = True) -> dict[str, Any]:
    """A job under the engine's names; lists leave out the bodies, which they do not have."""
    found = {field.name: getattr(job, field.name) for field in fields(job)}
    found = {"job_id": found.pop("id"), **found}
    if bodies:
        return found
    listed = LISTED.split(", ")
    return {name: value for name, value in found.items() if name in listed}


def clean(text: Any) -> str:
    """One line of text with nothing in it that a terminal would obey."""
    return str(text).translate(_UNSAFE)


def clean_lines(text: Any) -> str:
    """Return the same for text of several lines."""
    return "\n".join(clean(line) for line in str(text).split("\n"))


def age(length: timedelta | None) -> str:
    """A length of time in its two largest units."""
    if length is None:
        return ""
    total = abs(length.total_seconds())
    if total < 1:
        return f"{total * 1000:.{0 if total >= 0.01 else 1}f}ms"
    if total < 10:
        return f"{total:.1f}".removesuffix(".0") + "s"
    whole = round(total)
    for unit, name, lower, lower_name in (
        (86400, "d", 3600, "h"),
        (3600, "h", 60, "m"),
        (60, "m", 1, "s"),
    ):
        if whole >= unit:
            rest = whole % unit // lower
            return f"{whole // unit}{name}" + (f"{rest:02d}{lower_name}" if rest else "")
    return f"{whole}s"


def relative(at: datetime | None, now: datetime) -> str:
    """How long ago, or in how long."""
    if at is None:
        return ""
    if abs(at - now) < timedelta(seconds=1):
        return "now"
    return f"in {age(at - now)}" if at > now else f"{age(now - at)} ago"


def moment(at: datetime | None, now: datetime | None = None) -> str:
    """A time on the clock of this machine, with how long ago."""
    if at is None:
        return ""
    text = at.astimezone().isoformat(sep=" ", timespec="seconds")
    return f"{text} ({relative(at, now)})" if now else text


def amount(number: int | None) -> str:
    """A number with its thousands apart."""
    return "" if number is None else f"{number:,}"


def capped(number: int, most: int) -> str:
    """Format a number that was counted up to a bound: with a plus if it reached the bound."""
    return f"{number:,}+" if number >= most else f"{number:,}"


def size(number: int) -> str:
    """An amount of bytes."""
    value = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def count(number: int, noun: str) -> str:
    """A number of things."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def shown_error(error: Mapping[str, Any] | None, reason: str | None = None) -> str:
    """An error of an attempt in one line."""
    if not error:
        return clean(reason or "")
    parts: Sequence[Any] = [error.get("type"), error.get("message")]
    text = ": ".join(str(part) for part in parts if part)
    return clean(text or json.dumps(data(error), ensure_ascii=False))

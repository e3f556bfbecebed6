"""Options and types of values that several commands share."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from trunkline.errors import InvalidDuration
from trunkline.model import JobState, seconds

__all__ = [
    "DEADLINE",
    "DURATION",
    "PAYLOAD",
    "SINCE",
    "SIZE",
    "STATES",
    "TIME",
    "as_json",
    "dsn",
    "examples",
    "reason",
    "since_time",
    "split",
    "watch",
    "with_options",
    "yes",
]

Command = TypeVar("Command", bound=Callable[..., Any])

# Generic only in newer releases of click.
if TYPE_CHECKING:
    _Kind = click.ParamType[Any]
else:
    _Kind = click.ParamType

# In the order of a job's life.
STATES: Final = tuple(state.value for state in JobState)

_UNITS: Final = {
    "": 1,
    "b": 1,
    "kb": 1000,
    "mb": 1000**2,
    "gb": 1000**3,
    "kib": 1024,
    "mib": 1024**2,
    "gib": 1024**3,
}


class _Duration(_Kind):
    """A duration as people write it, in seconds."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            return seconds(float(value) if re.fullmatch(r"\d+(\.\d+)?", str(value)) else value)
        except InvalidDuration:
            self.fail(
                f"{value!r} is not a duration: write 500ms, 10s, 5m, 2h, 1d or 1h30m", param, ctx
            )


class _Size(_Kind):
    """An amount of memory, in bytes."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", str(value).strip().lower())
        if match is None or match[2] not in _UNITS or not float(match[1]):
            self.fail(f"{value!r} is not a size: write 512MB, 1GB or 1GiB", param, ctx)
        return int(float(match[1]) * _UNITS[match[2]])


class _Time(_Kind):
    """A point in time; without a zone it is UTC."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        try:
            at = datetime.fromisoformat(str(value))
        except ValueError:
            self.fail(
                f"{value!r} is not a time: write 2030-01-31T12:00, with +02:00 or Z for a zone "
                "(without one it is UTC)",
                param,
                ctx,
            )
        return at if at.tzinfo else at.replace(tzinfo=UTC)


class _Since(_Kind):
    """A point in time, or a length of time before now; see `since_time`."""

    name = "since"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime | timedelta:
        if isinstance(value, datetime | timedelta):
            return value
        if "-" in str(value):
            return TIME.convert(value, param, ctx)
        return timedelta(seconds=DURATION.convert(value, param, ctx))


class _Deadline(_Kind):
    """A point in time, or a duration from now."""

    name = "deadline"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        if "-" in str(value):
            return TIME.convert(value, param, ctx)
        return datetime.now(UTC) + timedelta(seconds=DURATION.convert(value, param, ctx))


class _Payload(_Kind):
    """A JSON object: the text itself, @FILE, or - for standard input."""

    name = "json"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, Any]:
        text = str(value)
        try:
            if text == "-":
                text = sys.stdin.read()
            elif text.startswith("@"):
                text = Path(text[1:]).read_text(encoding="utf-8")
            payload = json.loads(text)
        except (OSError, UnicodeDecodeError) as error:
            self.fail(f"cannot read the payload: {error}", param, ctx)
        except ValueError as error:
            self.fail(
                f'the payload is not JSON ({error}); quote it for the shell: \'{{"to": "you"}}\'',
                param,
                ctx,
            )
        if not isinstance(payload, dict):
            self.fail('the payload must be a JSON object such as {"to": "you"}', param, ctx)
        return payload


DEADLINE: Final = _Deadline()
DURATION: Final = _Duration()
SINCE: Final = _Since()
SIZE: Final = _Size()
TIME: Final = _Time()
PAYLOAD: Final = _Payload()

dsn = click.option(
    "--dsn",
    metavar="URI",
    help="Connection string of the database [default: TRUNKLINE_DSN, else the embedded server].",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
watch = click.option(
    "--watch", is_flag=True, help="Update once a second until Ctrl-C, which ends with code 0."
)
yes = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
reason = click.option("--reason", metavar="TEXT", help="Recorded in the operator log.")


def with_options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Add several options, in the order in which help shows them."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def examples(*lines: str) -> str:
    """Return the end of a command's help: command lines to copy, which are not wrapped."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


def since_time(since: datetime | timedelta, now: datetime) -> datetime:
    """Return the point in time that `SINCE` stands for; `now` is the engine's time."""
    return since if isinstance(since, datetime) else now - since


def split(values: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return names passed as --queues a,b or --queues a --queues b; None without the option."""
    names = [name.strip() for value in values for name in value.split(",")]
    unique = tuple(dict.fromkeys(name for name in names if name))
    if values and not unique:
        # An empty variable of a script must not mean everything.
        raise click.UsageError("A list of names is empty; leave the option out to mean all.")
    return unique or None

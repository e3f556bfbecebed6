"""Options and kinds of values that several commands share."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

__all__ = [
    "DEADLINE",
    "DURATION",
    "PAYLOAD",
    "SIZE",
    "STATES",
    "TIME",
    "as_json",
    "dsn",
    "examples",
    "ids",
    "job_id",
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

# The order of a job's life; the same words as trunkline.JobState, which is not imported for help.
STATES: Final = ("blocked", "scheduled", "ready", "running", "completed", "cancelled", "dead")

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
    """A length of time as people write it, in seconds."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        from trunkline.errors import InvalidDuration  # noqa: PLC0415 - see main.py
        from trunkline.model import seconds  # noqa: PLC0415 - see main.py

        try:
            return seconds(float(value) if re.fullmatch(r"\d+(\.\d+)?", str(value)) else value)
        except InvalidDuration:
            self.fail(
                f"{value!r} is not a length of time: write 500ms, 10s, 5m, 2h, 1d or 1h30m",
                param,
                ctx,
            )


class _Size(_Kind):
    """An amount of memory, in bytes."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", str(value).strip().lower())
        if found is None or found[2] not in _UNITS or not float(found[1]):
            self.fail(f"{value!r} is not a size: write 512MB, 1GB or 1GiB", param, ctx)
        return int(float(found[1]) * _UNITS[found[2]])


class _Time(_Kind):
    """A point in time; without a zone it is UTC."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        try:
            found = datetime.fromisoformat(str(value))
        except ValueError:
            self.fail(
                f"{value!r} is not a time: write 2030-01-31T12:00, with +02:00 or Z for a zone "
                "(without one it is UTC)",
                param,
                ctx,
            )
        return found if found.tzinfo else found.replace(tzinfo=UTC)


class _Deadline(_Kind):
    """A point in time, or a length of time from now."""

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
            found = json.loads(text)
        except (OSError, UnicodeDecodeError) as error:
            self.fail(f"cannot read the payload: {error}", param, ctx)
        except ValueError as error:
            self.fail(
                f'the payload is not JSON ({error}); quote it for the shell: \'{{"to": "you"}}\'',
                param,
                ctx,
            )
        if not isinstance(found, dict):
            self.fail('the payload must be a JSON object such as {"to": "you"}', param, ctx)
        return found


DEADLINE: Final = _Deadline()
DURATION: Final = _Duration()
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
    "--watch", is_flag=True, help="Show it live, once a second; Ctrl-C ends it with code 0."
)
yes = click.option("--yes", is_flag=True, help="Do not ask.")
job_id = click.argument("job_id", metavar="ID", type=click.UUID)
ids = click.argument("job_ids", metavar="ID...", nargs=-1, required=True, type=click.UUID)


def with_options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options at once, in the order in which help shows them."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def examples(*lines: str) -> str:
    """The end of a command's help: command lines to copy, which are not wrapped."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


def split(values: tuple[str, ...]) -> tuple[str, ...] | None:
    """Names given as --queues a,b or --queues a --queues b; None if none were."""
    names = [name.strip() for value in values for name in value.split(",")]
    found = tuple(dict.fromkeys(name for name in names if name))
    if values and not found:
        # An empty variable of a script must not mean everything.
        raise click.UsageError("A list of names is empty; leave the option out to mean all.")
    return found or None

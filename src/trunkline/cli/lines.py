"""One line of the tail, for people or for programs."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from datetime import date, datetime
from typing import Final
from uuid import UUID

import click

from trunkline.cli.output import age, clean, print_json, shown_error
from trunkline.model import ActivityLine

__all__ = ["printer"]

_COLOURS: Final = {
    "enqueued": "cyan",
    "started": "yellow",
    "completed": "green",
    "cancelled": "bright_black",
    "failed": "red",
    "lost": "red",
    "collided": "red",
    "snoozed": "blue",
    "released": "blue",
}
_WIDTH: Final = 9
# A terminal with less room gets whole seconds and short ids, so that errors have room.
_NARROW: Final = 100
_SHORT_ID: Final = 18
_REMEMBERED: Final = 10_000


def printer(*, as_json: bool) -> Callable[[ActivityLine], None]:
    """Return a function that writes one line."""
    if as_json:
        return print_json
    narrow = sys.stdout.isatty() and shutil.get_terminal_size().columns < _NARROW
    day: list[date] = [datetime.now().astimezone().date()]
    ids: dict[str, UUID] = {}

    def shown(job: UUID) -> str:
        if not narrow:
            return str(job)
        if len(ids) >= _REMEMBERED:
            ids.clear()
        # Ids of a batch have the same start; then only whole ids differ.
        short = str(job)[:_SHORT_ID]
        return short if ids.setdefault(short, job) == job else str(job)

    def write(line: ActivityLine) -> None:
        at = line.at.astimezone()
        if at.date() != day[0]:
            day[0] = at.date()
            click.secho(f"-- {day[0].isoformat()} --", dim=True)
        clock = f"{at:%H:%M:%S}" if narrow else f"{at:%H:%M:%S}.{at.microsecond // 1000:03d}"
        died = line.state == "dead" and line.event != "acknowledged"
        word = "dead" if died else line.event
        colour = "red" if died else _COLOURS.get(line.event, "magenta")
        styled = click.style(f"{word:<{_WIDTH}}", fg=colour, bold=died)
        rest = f"{shown(line.job_id)} {clean(line.task)}{_about(line)}"
        click.echo(f"{click.style(clock, dim=True)} {styled} {rest}")
        sys.stdout.flush()

    return write


def _about(line: ActivityLine) -> str:
    parts = [""] if line.queue == "default" else [f" [{clean(line.queue)}]"]
    if line.event == "enqueued":
        if line.run_at and line.run_at > line.at:
            parts.append(f"in {age(line.run_at - line.at)}")
    elif line.attempt:
        parts.append(f"#{line.attempt}")
    if line.event == "started" and line.worker:
        parts.append(f"on {clean(line.worker)}")
    if line.took is not None:
        parts.append(age(line.took))
    if line.event != "enqueued" and line.state == "scheduled" and line.run_at:
        parts.append(f"again in {age(line.run_at - line.at)}")
    if why := shown_error(line.error, line.reason):
        parts.append(f"- {why}")
    return " ".join(parts)

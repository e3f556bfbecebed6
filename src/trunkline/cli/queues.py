"""``trunkline queues``: what waits in each queue, and what may be claimed from it."""

from __future__ import annotations

import click

from trunkline.cli import options
from trunkline.cli.actions import change
from trunkline.cli.listing import list_rows
from trunkline.cli.output import age as length
from trunkline.cli.output import capped, clean, count
from trunkline.cli.tables import Column
from trunkline.model import QueueStatus

__all__ = ["queues"]

_EMPTY = "No queues yet. A queue is created with its first job."


@click.group()
def queues() -> None:
    """Queues: list, pause, resume, limit, age. A queue is created with its first job."""


@queues.command(
    "list",
    epilog=options.examples(
        "trunkline queues list",
        "trunkline queues list --watch",
        "trunkline queues list --json | jq '.[] | select(.paused)'",
    ),
)
@options.with_options(options.watch, options.dsn, options.as_json)
def list_(*, watch: bool, dsn: str | None, as_json: bool) -> None:
    """List queues with the jobs that wait and run in each.

    Jobs are counted up to 10,000; a plus means that many or more.
    """
    list_rows(
        dsn,
        lambda operator: operator.queues.list(),
        lambda _now, _out: _columns(),
        empty=_EMPTY,
        watch=watch,
        as_json=as_json,
    )


@queues.command(
    epilog=options.examples(
        "trunkline queues pause mail --reason 'provider is down'",
        "trunkline queues pause mail --refuse-new",
    )
)
@click.argument("queue", metavar="QUEUE")
@click.option("--refuse-new", is_flag=True, help="Refuse new jobs as well.")
@options.with_options(options.reason, options.dsn, options.as_json)
def pause(
    *, queue: str, reason: str | None, refuse_new: bool, dsn: str | None, as_json: bool
) -> None:
    """Stop claims from a queue; running jobs continue."""
    refused = " New jobs are refused." if refuse_new else ""
    change(
        lambda operator: operator.queues.pause(queue, reason=reason, refuse_enqueue=refuse_new),
        lambda _: f"Queue {clean(queue)} paused. Running jobs continue.{refused}",
        lambda _: {"queue": queue, "paused": True, "refuse_enqueue": refuse_new, "reason": reason},
        dsn=dsn,
        as_json=as_json,
    )


@queues.command(epilog=options.examples("trunkline queues resume mail"))
@click.argument("queue", metavar="QUEUE")
@options.with_options(options.reason, options.dsn, options.as_json)
def resume(*, queue: str, reason: str | None, dsn: str | None, as_json: bool) -> None:
    """Allow claims and new jobs again."""
    change(
        lambda operator: operator.queues.resume(queue, reason=reason),
        lambda paused: f"Queue {clean(queue)} {'resumed' if paused else 'was not paused'}.",
        lambda paused: {"queue": queue, "paused": False, "was_paused": paused},
        dsn=dsn,
        as_json=as_json,
    )


@queues.command(
    epilog=options.examples("trunkline queues limit mail 10000", "trunkline queues limit mail none")
)
@click.argument("queue", metavar="QUEUE")
@click.argument("jobs", metavar="N|none")
@options.with_options(options.reason, options.dsn, options.as_json)
def limit(*, queue: str, jobs: str, reason: str | None, dsn: str | None, as_json: bool) -> None:
    """Refuse new jobs while N are ready; `none` removes the limit."""
    if jobs != "none" and not (jobs.isdecimal() and 0 < int(jobs) < 2**31):
        raise click.BadParameter(f"{jobs!r} is neither a number from 1 on nor none.")
    most = None if jobs == "none" else int(jobs)
    message = "no longer limited" if most is None else f"limited to {count(most, 'ready job')}"
    change(
        lambda operator: operator.queues.limit(queue, most, reason=reason),
        lambda _: f"Queue {clean(queue)} {message}.",
        lambda _: {"queue": queue, "max_depth": most},
        dsn=dsn,
        as_json=as_json,
    )


@queues.command(
    epilog=options.examples("trunkline queues age mail", "trunkline queues age mail --off")
)
@click.argument("queue", metavar="QUEUE")
@click.option("--off", is_flag=True, help="Always serve the highest priority first again.")
@options.with_options(options.reason, options.dsn, options.as_json)
def age(*, queue: str, off: bool, reason: str | None, dsn: str | None, as_json: bool) -> None:
    """Serve low priorities in turn, so that none of them starves.

    One of sixteen claims then starts with the lowest priority. Priorities from 0 up and those
    below 0 are reversed separately.
    """
    message = (
        "serves the highest priority first"
        if off
        else "serves the lowest priority first in one of sixteen claims"
    )
    change(
        lambda operator: operator.queues.age(queue, ageing=not off, reason=reason),
        lambda _: f"Queue {clean(queue)} {message}.",
        lambda _: {"queue": queue, "ageing": not off},
        dsn=dsn,
        as_json=as_json,
    )


def _columns() -> list[Column[QueueStatus]]:
    def number(title: str, style: str, rank: int) -> Column[QueueStatus]:
        name = title.lower()
        return Column(
            title,
            lambda row: capped(getattr(row, name), row.counted_up_to),
            lambda row: style if getattr(row, name) else "dim",
            right=True,
            rank=rank,
        )

    def note(row: QueueStatus) -> str:
        if row.paused:
            return f"paused: {row.paused_reason}" if row.paused_reason else "paused"
        notes = [f"limit {row.max_depth:,}"] if row.max_depth else []
        return ", ".join([*notes, *(["ages"] if row.ageing else [])])

    return [
        Column("QUEUE", lambda row: row.queue, elastic=True),
        number("READY", "cyan", 0),
        number("RUNNING", "yellow", 0),
        number("SCHEDULED", "blue", 2),
        number("BLOCKED", "magenta", 5),
        number("DEAD", "red bold", 1),
        Column("OLDEST", lambda row: length(row.oldest_ready_age), right=True, rank=4),
        Column("", note, "yellow", rank=3, elastic=True),
    ]

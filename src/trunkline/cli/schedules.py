"""``trunkline schedules``: jobs that are enqueued by the clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import click

from trunkline.cli import options
from trunkline.cli.actions import change, confirm
from trunkline.cli.connection import opened
from trunkline.cli.listing import list_rows
from trunkline.cli.output import clean, moment, print_json, relative
from trunkline.cli.tables import Column
from trunkline.model import ScheduleChange, ScheduleStatus
from trunkline.operate import SyncOperator

__all__ = ["schedules"]

_EMPTY = "No schedules. Create one with: trunkline schedules set NAME CRON TASK"

_name = click.argument("name", metavar="NAME")


@click.group()
def schedules() -> None:
    """Jobs that are enqueued by the clock. Workers create the schedules of their tasks."""


@schedules.command(
    "list",
    epilog=options.examples(
        "trunkline schedules list",
        "trunkline schedules list --watch",
        "trunkline schedules list --json",
    ),
)
@options.with_options(options.watch, options.dsn, options.as_json)
def list_(*, watch: bool, dsn: str | None, as_json: bool) -> None:
    """List schedules with when they are due next and what they did last."""
    list_rows(
        dsn,
        lambda operator: operator.schedules.list(),
        lambda now, _out: _columns(now),
        empty=_EMPTY,
        watch=watch,
        as_json=as_json,
    )


@schedules.command(
    "set",
    epilog=options.examples(
        "trunkline schedules set nightly '0 3 * * *' report --time-zone Europe/Paris",
        "trunkline schedules set poll '*/5 * * * *' poll --payload '{\"source\": \"a\"}'",
        "trunkline schedules set hourly @hourly sweep --missed skip",
    ),
)
@_name
@click.argument("cron", metavar="CRON")
@click.argument("task", metavar="TASK")
@click.option("--payload", type=options.PAYLOAD, metavar="JSON", help="The text, @FILE or -.")
@click.option("--time-zone", metavar="NAME", default="UTC", show_default=True)
@click.option("--queue", metavar="NAME", help="Instead of the queue of the task.")
@click.option("--priority", type=click.IntRange(-50, 49), help="Higher priorities go first.")
@click.option("--tenant", metavar="NAME")
@click.option(
    "--missed",
    type=click.Choice(["skip", "once", "all"]),
    default="once",
    show_default=True,
    help="Due times that passed while no worker ran: enqueue none, the latest, or all of them.",
)
@click.option(
    "--paused/--not-paused",
    default=None,
    help="Enqueue nothing until it is resumed [default: keep the pause; a new one is active].",
)
@options.with_options(options.reason, options.dsn, options.as_json)
def set_(
    *,
    name: str,
    cron: str,
    task: str,
    payload: dict[str, Any] | None,
    dsn: str | None,
    as_json: bool,
    **fields: Any,
) -> None:
    """Create a schedule, or replace an existing one.

    CRON is five fields (minute hour day month weekday) in quotes, or @hourly, @daily and so on.
    """
    _change(
        lambda operator: operator.schedules.set(name, cron, task, payload=payload, **fields),
        lambda schedule: "created" if schedule.created else "changed",
        dsn=dsn,
        as_json=as_json,
    )


@schedules.command(
    epilog=options.examples("trunkline schedules pause nightly --reason 'the report is wrong'")
)
@options.with_options(_name, options.reason, options.dsn, options.as_json)
def pause(*, name: str, reason: str | None, dsn: str | None, as_json: bool) -> None:
    """Enqueue nothing for a schedule until it is resumed.

    Jobs that it has enqueued continue.
    """
    change(
        lambda operator: operator.schedules.pause(name, reason=reason),
        lambda _: f"Schedule {clean(name)} paused. Jobs that it has enqueued continue.",
        lambda schedule: schedule,
        dsn=dsn,
        as_json=as_json,
    )


@schedules.command(epilog=options.examples("trunkline schedules resume nightly"))
@options.with_options(_name, options.reason, options.dsn, options.as_json)
def resume(*, name: str, reason: str | None, dsn: str | None, as_json: bool) -> None:
    """Continue from now on. Due times during the pause do not count as missed."""
    _change(
        lambda operator: operator.schedules.resume(name, reason=reason),
        lambda _: "resumed",
        dsn=dsn,
        as_json=as_json,
    )


@schedules.command(epilog=options.examples("trunkline schedules remove nightly --yes"))
@options.with_options(_name, options.yes, options.reason, options.dsn, options.as_json)
def remove(*, name: str, yes: bool, reason: str | None, dsn: str | None, as_json: bool) -> None:
    """Remove a schedule. Jobs that it has enqueued stay."""
    confirm(f"Remove the schedule {clean(name)}?", yes=yes)
    change(
        lambda operator: operator.schedules.remove(name, reason=reason),
        lambda _: f"Schedule {clean(name)} removed. Jobs that it has enqueued stay.",
        lambda _: {"schedule": name, "removed": True},
        dsn=dsn,
        as_json=as_json,
    )


@schedules.command(
    "next",
    epilog=options.examples(
        "trunkline schedules next nightly",
        "trunkline schedules next --cron '*/15 9-17 * * 1-5' --time-zone Europe/Paris --count 3",
    ),
)
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--cron", metavar="CRON", help="An expression to try, instead of a schedule.")
@click.option("--time-zone", metavar="NAME", help="For --cron [default: UTC].")
@click.option("--after", type=options.TIME, metavar="TIME", help="Start from then [default: now].")
@click.option("--count", type=click.IntRange(1, 1000), default=5, show_default=True)
@options.with_options(options.dsn, options.as_json)
def next_(
    *,
    name: str | None,
    cron: str | None,
    time_zone: str | None,
    after: datetime | None,
    count: int,
    dsn: str | None,
    as_json: bool,
) -> None:
    """Show when a schedule, or an expression, is due next."""
    if (name is None) == (cron is None):
        raise click.UsageError("Name a schedule, or pass --cron.")
    if name is not None and time_zone is not None:
        raise click.UsageError("--time-zone is for --cron; a schedule has its own.")
    with opened(dsn) as session:
        operator = session.operator
        zone = time_zone or "UTC"
        if name is not None:
            schedule = operator.schedules.get(name)
            cron, zone = schedule.cron, schedule.time_zone
        due = operator.schedules.next_due(cron or "", time_zone=zone, after=after, count=count)
        now = operator.now()
    if as_json:
        print_json({"cron": cron, "time_zone": zone, "due": due})
        return
    for at in due:
        click.echo(moment(at, now))


def _change(
    action: Callable[[SyncOperator], ScheduleChange],
    verb: Callable[[ScheduleChange], str],
    *,
    dsn: str | None,
    as_json: bool,
) -> None:
    """Change a schedule and print when it is due next."""
    with opened(dsn) as session:
        schedule, now = action(session.operator), session.operator.now()
    if as_json:
        print_json(schedule)
        return
    due = "It is paused" if schedule.paused else f"Next due at {moment(schedule.next_run_at, now)}"
    click.echo(f"Schedule {clean(schedule.schedule)} {verb(schedule)}. {due}.")


def _columns(now: datetime) -> list[Column[ScheduleStatus]]:
    return [
        Column("SCHEDULE", lambda row: row.schedule, elastic=True),
        Column("CRON", lambda row: row.cron),
        Column("ZONE", lambda row: row.time_zone, rank=3),
        Column("TASK", lambda row: row.task, rank=1, elastic=True),
        Column(
            "NEXT",
            lambda row: "paused" if row.paused else relative(row.next_run_at, now),
            lambda row: "yellow" if row.paused else "",
        ),
        Column("LAST", lambda row: relative(row.last_run_at, now), rank=4),
        Column(
            "ERROR",
            lambda row: clean(row.last_error) if row.last_error else "",
            "red",
            rank=2,
            elastic=True,
        ),
    ]

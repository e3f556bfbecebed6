"""``trunkline tasks``: the tasks that the engine knows, with their policies."""

from __future__ import annotations

from datetime import datetime

import click
from rich.table import Table

from trunkline.cli import options
from trunkline.cli.connection import opened
from trunkline.cli.listing import list_rows
from trunkline.cli.output import age, clean, moment, print_json
from trunkline.cli.tables import Column, console, facts, put
from trunkline.model import TaskStatus

__all__ = ["tasks"]

_EMPTY = "No tasks yet. A worker registers those of its application: trunkline worker APP"


@click.group()
def tasks() -> None:
    """Registered tasks and their policies. Workers and clients register their tasks."""


@tasks.command(
    "list", epilog=options.examples("trunkline tasks list", "trunkline tasks list --json")
)
@options.with_options(options.dsn, options.as_json)
def list_(*, dsn: str | None, as_json: bool) -> None:
    """List tasks with their limits, their schedules and their policies."""
    list_rows(
        dsn,
        lambda operator: operator.tasks.list(),
        lambda _now, _out: _columns(),
        empty=_EMPTY,
        as_json=as_json,
    )


@tasks.command(epilog=options.examples("trunkline tasks show send"))
@click.argument("task", metavar="TASK")
@options.with_options(options.dsn, options.as_json)
def show(*, task: str, dsn: str | None, as_json: bool) -> None:
    """Show the limits, the schedules and the policy of a task."""
    with opened(dsn) as session:
        row, now = session.operator.tasks.get(task), session.operator.now()
    if as_json:
        print_json(row)
    else:
        put(console(), _facts(row, now))


def _columns() -> list[Column[TaskStatus]]:
    return [
        Column("TASK", lambda row: row.task, elastic=True, least=22),
        Column("QUEUE", lambda row: row.queue, elastic=True, least=9),
        Column("LIMITS", lambda row: ", ".join(row.limits), rank=1, elastic=True, least=24),
        Column("SCHEDULE", _schedule, rank=1, elastic=True, least=15),
        Column("LEASE", lambda row: age(row.lease), right=True, rank=2),
        Column("ATTEMPTS", lambda row: row.max_attempts, right=True, rank=3),
        Column("PRIO", lambda row: row.priority or "", right=True, rank=5),
        Column("HARD LIMIT", lambda row: age(row.hard_limit), right=True, rank=6),
        Column("PROFILE", lambda row: "" if row.profile == "default" else row.profile, rank=7),
        Column("AUDIT", lambda row: "yes" if row.audit else "", rank=4),
        Column("ALIAS OF", lambda row: row.alias_of or "", rank=2),
    ]


def _schedule(row: TaskStatus) -> str:
    match list(row.schedules.values()):
        case []:
            return ""
        case [cron]:
            return cron
        case crons:
            return f"{len(crons)} schedules"


def _facts(row: TaskStatus, now: datetime) -> Table:
    cost = ", ".join(f"{amount:,} {name}" for name, amount in (row.cost or {}).items())
    schedules = [f"{clean(cron)} ({clean(name)})" for name, cron in row.schedules.items()]
    backoff = (
        f"{age(row.backoff_base)} x {row.backoff_factor:g} for each failure,"
        f" at most {age(row.backoff_cap)}, ± {row.backoff_jitter:.0%}"
    )
    return facts(
        [
            ("task", clean(row.task)),
            ("alias of", clean(row.alias_of) if row.alias_of else None),
            ("queue", clean(row.queue)),
            ("limits", ", ".join(map(clean, row.limits))),
            ("cost", cost),
            ("schedule", "\n".join(schedules)),
            ("profile", clean(row.profile)),
            ("lease", age(row.lease)),
            ("hard limit", age(row.hard_limit)),
            ("attempts", row.max_attempts),
            ("priority", row.priority),
            ("back-off", backoff),
            (
                "lost jobs",
                "wait for the back-off" if row.lost_backoff else "run again after a short delay",
            ),
            (
                "worker dies",
                "jobs are taken back at once"
                if row.reclaim_on_worker_death
                else "jobs wait for the end of their lease",
            ),
            ("crash limit", row.crash_limit),
            ("unique until", row.unique_until),
            ("deferred often", "becomes dead" if row.dead_when_deferred else "reported"),
            ("audit", "every step" if row.audit else "only exceptions"),
            ("registered", moment(row.registered_at, now)),
            ("changed", moment(row.updated_at, now)),
        ]
    )

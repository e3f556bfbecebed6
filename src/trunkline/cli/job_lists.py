"""Lists of jobs, of dead letters and of their groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import click
from rich.console import Console

from trunkline.cli.command_line import continued
from trunkline.cli.job_options import read_filter
from trunkline.cli.listing import list_rows
from trunkline.cli.output import (
    STATE_STYLES,
    age,
    clean,
    job_data,
    print_json,
    relative,
    shown_error,
)
from trunkline.cli.tables import Column, console, put, table
from trunkline.model import DeadLetterGroup, FoundJobs, Job, JobState
from trunkline.operate import SyncOperator

__all__ = ["dead_columns", "group_columns", "job_columns", "list_jobs", "short_list"]

Find = Callable[[SyncOperator], Callable[..., FoundJobs]]

# Characters of an id or an error group that a narrow terminal shows.
_SHORT_ID: Final = 18
_SHORT_GROUP: Final = 8
# What an error needs to be of use: other columns make room for it.
_ERROR_ROOM: Final = 30


def list_jobs(
    ctx: click.Context,
    find: Find,
    columns: Callable[[datetime], Sequence[Column[Job]]],
    *,
    values: Mapping[str, Any],
    limit: int,
    cursor: str | None,
    empty: str,
    watch: bool,
    dsn: str | None,
    as_json: bool,
) -> None:
    """List the jobs that match a filter, and name the command that continues."""
    following: str | None = None
    found = False

    def ask(operator: SyncOperator) -> Sequence[Job]:
        nonlocal following, found
        jobs, following = find(operator)(read_filter(operator, values), limit=limit, cursor=cursor)
        found = bool(jobs)
        return jobs

    list_rows(
        dsn,
        ask,
        lambda now, _out: columns(now),
        empty=empty,
        watch=watch,
        as_json=as_json,
        document=lambda jobs: [job_data(job, bodies=False) for job in jobs],
    )
    if following is None or watch:
        return
    if as_json:
        print_json({"next": following}, err=True)
    else:
        # A call searches a bounded number of jobs: a page may be short although older jobs match.
        name = "Next page" if found else "Older jobs were not searched. Continue with"
        click.echo(f"{name}: {continued(ctx, following)}", err=True)


def short_list(jobs: Sequence[Job], now: datetime) -> None:
    """Print jobs as a table."""
    out = console()
    put(out, table(job_columns(now), jobs, out.width))


def job_columns(now: datetime) -> list[Column[Job]]:
    """Return the columns of jobs in any state."""

    def what(job: Job) -> str:
        if job.state is JobState.RUNNING:
            parts = [f"{job.progress}%" if job.progress is not None else "", job.phase, job.message]
            return " ".join(part for part in parts if part)
        if job.state is JobState.COMPLETED:
            return ""
        return shown_error(job.last_error, job.reason)

    def when(job: Job) -> str:
        match job.state:
            case JobState.RUNNING:
                return f"for {age(now - job.claimed_at)}" if job.claimed_at else ""
            case JobState.SCHEDULED:
                return relative(job.run_at, now)
            case JobState.READY | JobState.BLOCKED:
                return f"for {age(now - (job.run_at or job.created_at))}"
            case _:
                return relative(job.finished_at, now)

    return [
        Column("JOB", lambda job: job.id, short=_SHORT_ID),
        Column("STATE", lambda job: job.state, lambda job: STATE_STYLES[job.state]),
        Column("TASK", lambda job: job.task, elastic=True),
        Column("QUEUE", lambda job: job.queue, rank=3, elastic=True),
        Column("TRY", lambda job: f"{job.failures}/{job.max_attempts}", right=True, rank=4),
        Column("WHEN", when, rank=2),
        Column("PRIO", lambda job: job.priority or "", right=True, rank=6),
        Column("TENANT", lambda job: job.tenant, rank=5, elastic=True),
        Column("WHAT", what, rank=1, elastic=True, room=_ERROR_ROOM),
    ]


def dead_columns(now: datetime) -> list[Column[Job]]:
    """Return the columns of dead letters."""
    return [
        Column("JOB", lambda job: job.id, short=_SHORT_ID),
        Column("TASK", lambda job: job.task, elastic=True),
        Column("QUEUE", lambda job: job.queue, rank=4, elastic=True),
        Column("DIED", lambda job: relative(job.finished_at, now), rank=2),
        Column("TRY", lambda job: f"{job.failures}/{job.max_attempts}", right=True, rank=5),
        Column("SEEN", lambda job: "yes" if job.acknowledged_at else "", rank=3),
        Column(
            "WHY",
            lambda job: shown_error(job.last_error, job.reason),
            "red",
            rank=1,
            elastic=True,
            room=_ERROR_ROOM,
        ),
    ]


def group_columns(now: datetime, _out: Console) -> list[Column[DeadLetterGroup]]:
    """Return the columns of error groups."""

    def tasks(group: DeadLetterGroup) -> str:
        names = sorted(group.tasks, key=lambda name: (-group.tasks[name], name))
        return ", ".join(clean(name) for name in names)

    return [
        Column("GROUP", lambda group: group.error_group, short=_SHORT_GROUP),
        Column(
            "JOBS",
            lambda group: f"{group.jobs:,}{'+' if group.more else ''}",
            "red bold",
            right=True,
        ),
        Column("LAST", lambda group: relative(group.last_died_at, now), rank=2),
        Column("TASKS", tasks, rank=3, elastic=True),
        Column("ERROR", lambda group: group.pattern, "red", rank=1, elastic=True, room=_ERROR_ROOM),
    ]

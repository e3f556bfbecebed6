"""How jobs are shown: as a list, one of them, and while one is waited for."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import click
from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from trunkline.cli.connection import Session, find_job
from trunkline.cli.output import (
    STATE_STYLES,
    age,
    clean,
    data,
    job_data,
    moment,
    print_json,
    relative,
    shown_error,
)
from trunkline.cli.quota_views import books
from trunkline.cli.tables import Column, console, facts, live, put, show, state_text, table
from trunkline.db.address import address
from trunkline.db.call import Call
from trunkline.db.calls.quotas import usage_of_job
from trunkline.db.calls.read import JobPage
from trunkline.errors import JobCancelled, JobFailed, SchemaForbidden, WaitTimeout
from trunkline.model import Enqueued, Job, JobState, JobUsage

__all__ = ["await_end", "show_list", "show_one"]

_log = logging.getLogger("trunkline.cli")

_FIRST_LOOK = 0.05
_LAST_LOOK = 1.0


def show_list(
    session: Session, call: Call[JobPage], limit: int, *, watch: bool, as_json: bool
) -> None:
    """A table of jobs, once or live."""
    if watch:
        live(
            lambda: session.persist(lambda: (session.ask(call).jobs, session.now())),
            lambda found, out: table(_columns(found[1]), _that_fit(found[0], out), out.width),
            as_json=as_json,
            document=lambda found: _without_bodies(found[0]),
        )
        return
    jobs, following = session.ask(call)
    if as_json:
        print_json(_without_bodies(jobs))
    else:
        show(
            _columns(session.now()),
            jobs,
            nothing="No jobs" if following is None else "None among the newest",
        )
    if following is not None and len(jobs) < limit:
        _log.warning(
            "Only the newest jobs were searched. Search older ones: --before %s", following
        )


def show_one(session: Session, job_id: UUID, *, watch: bool, as_json: bool) -> None:
    """One job with everything; live until it has ended."""
    found = _looked_up(session, job_id)
    if not watch:
        if as_json:
            print_json(found.document())
        else:
            out = console()
            put(out, _detail(found, out))
        return
    live(
        lambda: session.persist(lambda: _looked_up(session, job_id)),
        _detail,
        as_json=as_json,
        ended=lambda found: found.job.state.final,
        document=lambda found: found.document(),
    )


class _Found(NamedTuple):
    job: Job
    # None for who may not read the books.
    usage: list[JobUsage] | None
    now: datetime

    def document(self) -> dict[str, Any]:
        return {**job_data(self.job), "usage": self.usage}


def _looked_up(session: Session, job_id: UUID) -> _Found:
    job = find_job(session, job_id)
    usage = None
    with suppress(SchemaForbidden):
        usage = session.ask(usage_of_job(job_id))
    return _Found(job, usage, session.now())


def await_end(session: Session, made: Enqueued, timeout: float | None, *, as_json: bool) -> None:
    """Wait until a job has ended and print its result; raise if it did not complete."""
    if not as_json:
        click.echo(f"{made.job_id}  {made.state}", err=True)
    end = None if timeout is None else time.monotonic() + timeout
    pause = _FIRST_LOOK
    while True:
        job = session.persist(lambda: find_job(session, made.job_id))
        if job.state.final:
            break
        left = None if end is None else end - time.monotonic()
        if left is not None and left <= 0:
            raise WaitTimeout(made.job_id, timeout or 0, server=address(session.target))
        time.sleep(pause if left is None else min(pause, left))
        pause = min(pause * 1.5, _LAST_LOOK)
    if job.state is JobState.DEAD:
        raise JobFailed(job.id, job.reason, error=job.last_error, errors=job.errors)
    if job.state is JobState.CANCELLED:
        raise JobCancelled(job.id, job.reason)
    print_json(job if as_json else job.result)


def _without_bodies(jobs: Sequence[Job]) -> list[dict[str, Any]]:
    return [data(job_data(job, bodies=False)) for job in jobs]


def _that_fit(jobs: Sequence[Job], out: Console) -> Sequence[Job]:
    return jobs[: max(1, out.height - 3)] if out.is_terminal else jobs


def _columns(now: datetime) -> list[Column[Job]]:
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
                return f"since {age(now - (job.run_at or job.created_at))}"
            case _:
                return relative(job.finished_at, now)

    return [
        Column("JOB", lambda job: job.id),
        Column("STATE", lambda job: job.state, lambda job: STATE_STYLES[job.state]),
        Column("TASK", lambda job: job.task, elastic=True),
        Column("QUEUE", lambda job: job.queue, rank=3, elastic=True),
        Column("TRY", lambda job: f"{job.failures}/{job.max_attempts}", right=True, rank=4),
        Column("WHEN", when, rank=1),
        Column("PRIO", lambda job: job.priority or "", right=True, rank=6),
        Column("TENANT", lambda job: job.tenant, rank=5, elastic=True),
        Column("WHAT", what, rank=2, elastic=True),
    ]


def _detail(found: _Found, out: Console) -> RenderableType:
    job, usage, now = found
    ended = job.finished_at
    took = ended - job.claimed_at if ended and job.claimed_at else None
    waited = job.claimed_at - job.created_at if job.claimed_at else None
    head = facts(
        [
            ("job", str(job.id)),
            ("state", state_text(job.state)),
            ("task", clean(job.task)),
            ("queue", clean(job.queue)),
            ("priority", job.priority or None),
            ("tenant", clean(job.tenant or "")),
            ("attempt", f"{job.attempt}; {job.failures} failed of {job.max_attempts} allowed"),
            ("worker deaths", job.crashes or None),
            ("put off", f"{job.deferrals} times" if job.deferrals else None),
            ("created", moment(job.created_at, now)),
            ("due", moment(job.run_at, now) if not ended else None),
            ("expires", moment(job.expires_at, now) if not job.attempt else None),
            ("claimed", moment(job.claimed_at, now)),
            ("heartbeat", moment(job.heartbeat_at, now) if not ended else None),
            ("lease until", moment(job.lease_expires_at, now)),
            ("hard limit", moment(job.hard_deadline, now)),
            ("cancel asked", moment(job.cancel_requested_at, now)),
            ("ended", moment(ended, now)),
            ("waited", age(waited)),
            ("took", age(took)),
            ("acknowledged", moment(job.acknowledged_at, now)),
            ("worker", clean(job.worker or "")),
            ("reason", clean(job.reason or "")),
            ("unique key", clean(job.unique_key or "")),
            ("correlation", clean(job.correlation_id or "")),
            ("retry of", job.retry_of),
            ("tags", clean(", ".join(job.tags))),
        ]
    )
    parts: list[RenderableType] = [head]
    if job.state is JobState.RUNNING and job.progress is not None:
        parts.append(_progress(job, out))
    elif job.state is JobState.RUNNING and (job.phase or job.message):
        parts.append(Text(clean(" ".join(filter(None, (job.phase, job.message))))))
    for name, body in (("payload", job.payload), ("result", job.result)):
        if body is not None and body != {}:
            parts += [Text(f"{name}", style="bold"), Text(_indented(body))]
    if usage:
        parts += [Text("used", style="bold"), table(_account(), usage, out.width)]
    if job.errors:
        parts.append(Text("errors, newest last", style="bold"))
        parts += [_error(error) for error in job.errors]
    elif job.last_error:
        parts += [Text("last error", style="bold"), Text("  " + shown_error(job.last_error))]
    return Group(*parts)


def _account() -> list[Column[JobUsage]]:
    """Lines of the books by attempt; the limit is told by its filled-in name."""
    attempt: Column[JobUsage] = Column("ATTEMPT", lambda row: row.attempt, right=True)
    name: Column[JobUsage] = Column("LIMIT", lambda row: row.name, elastic=True)
    return [attempt, name, *books("limit")[1:]]


def _progress(job: Job, out: Console) -> RenderableType:
    line = Table.grid(padding=(0, 1))
    width = max(10, min(40, out.width - 20))
    percent = job.progress or 0
    words = clean(" ".join(filter(None, (job.phase, job.message))))
    line.add_row(
        Text("progress", style="bold"),
        ProgressBar(total=100, completed=percent, width=width),
        Text(f"{percent:3d}%"),
    )
    return Group(line, Text("          " + words)) if words else line


def _error(error: Any) -> Text:
    when = str(error.get("at", ""))[:19].replace("T", " ")
    head = f"  attempt {error.get('attempt')}, {when}, {error.get('kind')}"
    if error.get("worker"):
        head += f" on {error['worker']}"
    text = Text(clean(head) + "\n    ")
    text.append(shown_error(error), style="red")
    if error.get("value") is not None:
        text.append(f"\n    value: {clean(str(error['value']))}")
    for line in str(error.get("traceback") or "").splitlines():
        text.append("\n    " + clean(line), style="dim")
    return text


def _indented(body: Any) -> str:
    lines = json.dumps(data(body), indent=2, ensure_ascii=False).splitlines()
    return "\n".join("  " + clean(line) for line in lines)

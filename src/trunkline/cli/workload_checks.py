"""The checks of `trunkline doctor` that concern workers, jobs and disk space."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from trunkline.cli.connection import Session
from trunkline.cli.finding import Finding
from trunkline.cli.output import amount, clean, count, size
from trunkline.db.calls import checks, views

__all__ = ["dead", "disk", "unserved", "workers"]

_SHOWN: Final = 3


def workers(session: Session) -> Iterator[Finding]:
    rows = session.ask(views.workers(everyone=False))
    alive = [row for row in rows if row.alive]
    silent = [row.worker for row in rows if not row.alive]
    if silent:
        yield Finding(
            "workers",
            "warn",
            f"{len(alive)} alive, {len(silent)} silent: {', '.join(map(clean, silent[:_SHOWN]))}",
            "Their jobs are taken back by the duty reclaim; see: trunkline workers list",
        )
    elif not alive:
        yield Finding("workers", "warn", "none", "Start one with: trunkline worker APP")
    else:
        busy = sum(row.running for row in alive)
        yield Finding("workers", "ok", f"{len(alive)} alive, {count(busy, 'job')} running")


def unserved(session: Session) -> Iterator[Finding]:
    found = session.ask(checks.ready_tasks())
    rows = [row for row in found if not row.served]
    sample = _sample(found)
    if not rows:
        yield Finding("unserved jobs", "ok", f"none: each ready job has a live worker{sample}")
        return
    named = ", ".join(
        f"{clean(row.task)} in {clean(row.queue)} ({amount(row.jobs)})" for row in rows[:_SHOWN]
    )
    more = f" and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else ""
    yield Finding(
        "unserved jobs",
        "warn",
        f"no live worker takes {named}{more}{sample}",
        "Start a worker that serves these queues and tasks: trunkline worker APP --queues NAMES",
    )


def _sample(found: Sequence[checks.ReadyTask]) -> str:
    """Return a remark if not every ready job was checked."""
    queues = {row.queue for row in found if row.more}
    if not queues:
        return ""
    where = count(len(queues), "queue")
    return f" (checked the first {found[0].counted_up_to:,} ready jobs of {where} with more)"


def dead(session: Session) -> Iterator[Finding]:
    most = 1000
    rows = session.ask(views.dead_letters(acknowledged=False, limit=most))
    if rows:
        number = f"{most:,} or more" if len(rows) == most else amount(len(rows))
        yield Finding(
            "dead letters",
            "warn",
            f"{number} not acknowledged",
            "See them with: trunkline dead list; then replay, discard or acknowledge them.",
        )
    else:
        yield Finding("dead letters", "ok", "all acknowledged")


def disk(session: Session) -> Iterator[Finding]:
    rows = session.ask(checks.table_sizes())
    total = sum(row.bytes for row in rows)
    largest = ", ".join(f"{row.table} {size(row.bytes)}" for row in rows[:_SHOWN])
    yield Finding("disk", "ok", f"{size(total)} in {len(rows)} tables; {largest}")

"""Turns recent activity into lines.

Jobs that run smoothly leave no events. So created, claimed and ended are lines of a job's row, and
everything else is the line of an event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from trunkline.model import ActivityLine, Event, RecentJob, Recently

__all__ = ["LineKey", "line_key", "line_order", "lines_of"]

# Events that mean the same as a time in the row of a job, with their name there.
_SAME: Final = {"claimed": "started"}
_ENDINGS: Final = frozenset({"completed", "cancelled", "dead"})

LineKey = tuple[UUID, int, str, datetime]


def line_key(line: ActivityLine) -> LineKey:
    """Return what identifies a line: each is reported once."""
    return line.job_id, line.attempt, line.event, line.at


def line_order(line: ActivityLine) -> tuple[datetime, UUID, int]:
    """Return the order of lines: by time, and within one statement created, claimed, ended."""
    place = {"enqueued": 0, "started": 1}.get(line.event, 2)
    return line.at, line.job_id, place


def lines_of(activity: Recently, since: datetime) -> Iterator[ActivityLine]:
    """Yield the lines of recent activity that are not before a time, each once."""
    seen: set[LineKey] = set()
    sources: Iterable[Callable[[], Iterable[ActivityLine]]] = (
        # Rows first, because they have more details than an event with the same meaning.
        lambda: (line for job in activity.jobs for line in _of_job(job)),
        lambda: map(_of_event, activity.events),
    )
    for source in sources:
        for line in source():
            if line.at >= since and line_key(line) not in seen:
                seen.add(line_key(line))
                yield line


def _of_event(event: Event) -> ActivityLine:
    detail = dict(event.detail or {})
    return ActivityLine(
        at=event.at,
        event=_SAME.get(event.kind, event.kind),
        job_id=event.job_id,
        attempt=event.attempt,
        state=event.to_state,
        task=event.task,
        queue=event.queue,
        tenant=event.tenant,
        worker=event.worker,
        took=None,
        run_at=_time(detail.pop("run_at", None)),
        reason=detail.pop("reason", None),
        error=detail.pop("error", None),
        detail=detail or None,
    )


def _of_job(job: RecentJob) -> Iterator[ActivityLine]:
    def line(at: datetime, event: str, **more: Any) -> ActivityLine:
        facts: dict[str, Any] = dict.fromkeys(("took", "run_at", "reason", "error", "detail"))
        facts |= {"attempt": job.attempt, "worker": job.worker} | more
        return ActivityLine(
            at=at,
            event=event,
            job_id=job.job_id,
            task=job.task,
            queue=job.queue,
            tenant=job.tenant,
            **facts,
        )

    run_at = _first_run_at(job)
    yield line(
        job.created_at,
        "enqueued",
        attempt=0,
        worker=None,
        state="ready" if run_at is None else "scheduled",
        run_at=run_at,
    )
    if job.claimed_at is not None:
        yield line(job.claimed_at, "started", state="running")
    # The end of a dead letter is an event: failed, lost, deferred or collided.
    if job.finished_at is not None and job.state in _ENDINGS - {"dead"}:
        took = job.finished_at - job.claimed_at if job.claimed_at else None
        yield line(job.finished_at, job.state, state=job.state, took=took, reason=job.reason)


def _first_run_at(job: RecentJob) -> datetime | None:
    """Return until when the job was delayed at its enqueue, as far as its row shows that.

    After an attempt has failed or was deferred, the row has the due time of the next attempt.
    """
    if job.run_at is None or job.run_at <= job.created_at:
        return None
    claimed = job.attempt == 1 and job.claimed_at is not None and job.run_at <= job.claimed_at
    return job.run_at if job.attempt == 0 or claimed else None


def _time(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)

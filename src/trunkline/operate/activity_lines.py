"""Makes lines of what a look at recent activity found.

Jobs that run smoothly leave no events, so a line is made of what a job's row says (created,
claimed, ended) or of an event (everything else).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from trunkline.model import ActivityLine, Event, RecentJob, Recently

__all__ = ["LineKey", "line_key", "line_order", "lines_of"]

# Events that tell the same as the row of a job; the others have no counterpart.
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


def lines_of(looked: Recently, since: datetime) -> Iterator[ActivityLine]:
    """Yield the lines of a look that are not before a time, each once."""
    told: set[LineKey] = set()
    sources: Iterable[Callable[[], Iterable[ActivityLine]]] = (
        # Rows first: where both tell of the same, they know more.
        lambda: (line for job in looked.jobs for line in _of_job(job)),
        lambda: map(_of_event, looked.events),
    )
    for source in sources:
        for line in source():
            if line.at >= since and line_key(line) not in told:
                told.add(line_key(line))
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

    first = "scheduled" if job.run_at and job.run_at > job.created_at else "ready"
    # After a failure or a pause the due time is another one.
    run_at = job.run_at if first == "scheduled" and job.attempt <= 1 else None
    yield line(
        job.created_at,
        "enqueued",
        attempt=0,
        worker=None,
        state="ready" if run_at is None else first,
        run_at=run_at,
    )
    if job.claimed_at is not None:
        yield line(job.claimed_at, "started", state="running")
    # A dead letter ends by an event: failed, lost, put off or collided.
    if job.finished_at is not None and job.state in _ENDINGS - {"dead"}:
        took = job.finished_at - job.claimed_at if job.claimed_at else None
        yield line(job.finished_at, job.state, state=job.state, took=took, reason=job.reason)


def _time(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)

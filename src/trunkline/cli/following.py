"""Finds out what happened since the last look, each thing once.

Jobs that run smoothly leave no events, so a line is made of what a job's row says (made, claimed,
ended) or of an event (everything else). A transaction may commit long after the times it wrote, so
each look overlaps the one before, and now and then far more; what was told already is remembered
for as long as a look reaches back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from trunkline.cli.connection import Session
from trunkline.db.calls.recent import Event, RecentJob, Recently, recently

__all__ = ["Follower", "Line"]

_INTERVAL: Final = 0.5
# Looks that take long are made less often, so that they take a third of a processor at most.
_REST_FACTOR: Final = 2
_LONGEST_REST: Final = 5.0
# Each look goes back this far, which is enough for nearly every transaction.
_SHORT: Final = timedelta(seconds=3)
# Every so often a look goes back this far, for the others.
_LONG: Final = timedelta(seconds=60)
_LONG_EVERY: Final = timedelta(seconds=10)
_PLENTY: Final = 10_000
_HISTORY: Final = (timedelta(minutes=2), timedelta(hours=1), timedelta(days=1))

# Events that tell the same as the row of a job; the others have no counterpart.
_SAME: Final = {"claimed": "started"}
_ENDINGS: Final = frozenset({"completed", "cancelled", "dead"})


_Key = tuple[UUID, int, str, datetime]


class Line(NamedTuple):
    """Something that happened to a job."""

    at: datetime
    event: str
    job_id: UUID
    attempt: int
    state: str | None
    task: str
    queue: str
    tenant: str | None
    worker: str | None
    took: timedelta | None
    run_at: datetime | None
    reason: str | None
    error: dict[str, Any] | None
    detail: dict[str, Any] | None


class Follower:
    """Looks again and again, and tells what is new."""

    def __init__(
        self, session: Session, *, task: str | None, queue: str | None, states: frozenset[str]
    ) -> None:
        self._session = session
        self._task = task
        self._queue = queue
        self._states = states
        # What was told, as far back as a look may reach.
        self._seen: set[_Key] = set()
        self._last: datetime | None = None
        self._last_long: datetime | None = None
        self._pause = _INTERVAL

    def history(self, most: int) -> list[Line]:
        """The last lines before now, oldest first; what comes later is for `news`."""
        now = self._session.persist(self._session.now)
        # First what the looks to come reach back to, so that they tell it neither twice nor never.
        window = self._look(now - _LONG, None)
        self._seen = {_key(line) for line in _lines(window, now - _LONG)}
        self._last = self._last_long = window.now
        found: dict[_Key, Line] = {}
        for reach in _HISTORY if most else ():
            # What the states leave out is left out afterwards, so it takes more to find enough.
            looked = self._look(now - reach, _PLENTY if self._states else most)
            for line in (*_lines(window, now - _LONG), *_lines(looked, now - reach)):
                if line.at < now - _LONG or _key(line) in self._seen:
                    found[_key(line)] = line
            if sum(map(self._wanted, found.values())) >= most:
                break
        return sorted(filter(self._wanted, found.values()), key=_order)[-most:] if most else []

    def news(self) -> list[Line]:
        """What happened since the last look, oldest first."""
        assert self._last is not None  # noqa: S101 - history comes first
        assert self._last_long is not None  # noqa: S101 - history comes first
        started = time.monotonic()
        # After a time without a server a look reaches back to where the last one was.
        long = self._last - self._last_long >= _LONG_EVERY
        since = self._last - (_LONG if long else _SHORT)
        looked = self._look(since, None)
        self._last = looked.now
        fresh = [line for line in _lines(looked, since) if _key(line) not in self._seen]
        self._seen.update(map(_key, fresh))
        if long:
            self._last_long = looked.now
            # No look to come reaches further back than this.
            self._seen = {key for key in self._seen if key[3] >= looked.now - _LONG}
        took = time.monotonic() - started
        self._pause = min(max(_INTERVAL, took * _REST_FACTOR), _LONGEST_REST)
        return sorted(filter(self._wanted, fresh), key=_order)

    def rest(self) -> None:
        """Wait before the next look."""
        time.sleep(self._pause)

    def _look(self, since: datetime, most: int | None) -> Recently:
        call = recently(since, task=self._task, queue=self._queue, most=most)
        return self._session.persist(lambda: self._session.ask(call))

    def _wanted(self, line: Line) -> bool:
        return not self._states or line.state in self._states


def _key(line: Line) -> _Key:
    return line.job_id, line.attempt, line.event, line.at


def _order(line: Line) -> tuple[datetime, UUID, int]:
    # Within one statement: made before claimed, claimed before ended.
    place = {"enqueued": 0, "started": 1}.get(line.event, 2)
    return line.at, line.job_id, place


def _lines(looked: Recently, since: datetime) -> Iterator[Line]:
    told: set[_Key] = set()
    sources: Iterable[Callable[[], Iterable[Line]]] = (
        # Rows first: where both tell of the same, they know more.
        lambda: (line for job in looked.jobs for line in _of_job(job)),
        lambda: map(_of_event, looked.events),
    )
    for source in sources:
        for line in source():
            if line.at >= since and _key(line) not in told:
                told.add(_key(line))
                yield line


def _of_event(event: Event) -> Line:
    detail = dict(event.detail or {})
    return Line(
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


def _of_job(job: RecentJob) -> Iterator[Line]:
    def line(at: datetime, event: str, **more: Any) -> Line:
        facts: dict[str, Any] = dict.fromkeys(("took", "run_at", "reason", "error", "detail"))
        facts |= {"attempt": job.attempt, "worker": job.worker} | more
        return Line(
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

"""The measure itself."""

from __future__ import annotations

import secrets
import statistics
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from trunkline.cli.connection import Session
from trunkline.db.calls import bench, produce, work
from trunkline.errors import SchemaForbidden
from trunkline.model import TaskPolicy

__all__ = ["Measured", "measure"]

_TASK: Final = "trunkline_bench"
_BULK: Final = 1000
_TRIPS: Final = 100


class Measured(NamedTuple):
    """What came out."""

    queue: str
    jobs: int
    batch: int
    round_trip_ms: dict[str, float]
    enqueue_per_second: float
    enqueue_ms: dict[str, float]
    bulk_per_second: float
    work_per_second: float
    taken_by_others: int
    cleaned_up: bool


def measure(session: Session, *, jobs: int, batch: int) -> Measured:
    """Enqueue, claim and complete in a queue of its own, and clean up whatever happens."""
    queue = f"{_TASK}_{secrets.token_hex(4)}"
    since = session.now()
    single = max(1, jobs // 10)
    session.ask(produce.register_tasks([TaskPolicy(task=_TASK, queue=queue)]))
    cleaned = False
    try:
        trips = [_timed(lambda: session.ask(bench.round_trip())) for _ in range(_TRIPS)]
        one = [{"task": _TASK, "queue": queue, "payload": {"n": 1}}]
        singles = [_timed(lambda: session.ask(produce.enqueue_many(one))) for _ in range(single)]
        bulk = _timed(lambda: _fill(session, one[0], jobs))
        started = time.monotonic()
        done = _work(session, queue, batch)
        working = time.monotonic() - started
    finally:
        cleaned = _clean(session, lambda: session.ask(bench.remove_traces(queue, _TASK, since)))
    total = single + jobs
    return Measured(
        queue=queue,
        jobs=total,
        batch=batch,
        round_trip_ms=_percentiles(trips),
        enqueue_per_second=round(single / sum(singles), 1),
        enqueue_ms=_percentiles(singles),
        bulk_per_second=round(jobs / bulk, 1),
        work_per_second=round(done / working, 1),
        taken_by_others=total - done,
        cleaned_up=cleaned,
    )


def _fill(session: Session, job: dict[str, Any], jobs: int) -> None:
    for start in range(0, jobs, _BULK):
        session.ask(produce.enqueue_many([job] * min(_BULK, jobs - start)))


def _work(session: Session, queue: str, batch: int) -> int:
    done, position = 0, None
    while True:
        claimed = session.ask(work.claim(_TASK, [queue], batch, [_TASK], position))
        position = claimed.position
        if not claimed.jobs:
            return done
        ids = [job.job_id for job in claimed.jobs]
        session.ask(work.complete(_TASK, ids, [job.attempt for job in claimed.jobs]))
        done += len(ids)


def _clean(session: Session, remove: Callable[[], Any]) -> bool:
    if session.connection.closed:
        return False
    try:
        remove()
    except SchemaForbidden:
        return False
    return True


def _timed(action: Callable[[], Any]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def _percentiles(seconds: list[float]) -> dict[str, float]:
    if len(seconds) < 2:
        return dict.fromkeys(("p50", "p99"), round(seconds[0] * 1000, 3))
    cuts = statistics.quantiles(seconds, n=100, method="inclusive")
    return {"p50": round(cuts[49] * 1000, 3), "p99": round(cuts[98] * 1000, 3)}

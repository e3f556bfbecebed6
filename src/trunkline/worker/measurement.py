"""Measures enqueue, claim and complete on a server; what `trunkline bench` prints."""

from __future__ import annotations

import secrets
import statistics
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeVar

from trunkline.db.call import Call
from trunkline.db.calls import bench, produce, views, work
from trunkline.db.connect import connect
from trunkline.db.patient import PatientConnection
from trunkline.db.runner import run
from trunkline.errors import SchemaForbidden
from trunkline.model import TaskPolicy

__all__ = ["Measurement", "measure"]

T = TypeVar("T")

_TASK: Final = "trunkline_bench"
_BULK: Final = 1000
_TRIPS: Final = 100


class Measurement(NamedTuple):
    """The figures, and what is left of the jobs."""

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


def measure(dsn: str, *, jobs: int, batch: int) -> Measurement:
    """Enqueue, claim and complete jobs in a new queue, and remove them also after an error."""
    with connect(dsn, name="trunkline bench") as connection:
        return _Bench(connection, jobs, batch).run()


class _Bench:
    def __init__(self, connection: PatientConnection, jobs: int, batch: int) -> None:
        self._connection = connection
        self._queue = f"{_TASK}_{secrets.token_hex(4)}"
        self._job = {"task": _TASK, "queue": self._queue, "payload": {"n": 1}}
        self._jobs = jobs
        self._batch = batch

    def run(self) -> Measurement:
        single = max(1, self._jobs // 10)
        since = self._call(views.clock())
        self._call(produce.register_tasks([TaskPolicy(task=_TASK, queue=self._queue)]))
        cleaned_up = False
        try:
            trips = [_timed(lambda: self._call(bench.round_trip())) for _ in range(_TRIPS)]
            enqueue_times = [_timed(lambda: self._enqueue(1)) for _ in range(single)]
            bulk_time = _timed(self._enqueue_in_bulk)
            started = time.perf_counter()
            completed = self._work()
            work_time = time.perf_counter() - started
        finally:
            if not self._connection.closed:
                cleaned_up = self._remove_traces(since)
        total = single + self._jobs
        return Measurement(
            queue=self._queue,
            jobs=total,
            batch=self._batch,
            round_trip_ms=_percentiles(trips),
            enqueue_per_second=round(single / sum(enqueue_times), 1),
            enqueue_ms=_percentiles(enqueue_times),
            bulk_per_second=round(self._jobs / bulk_time, 1),
            work_per_second=round(completed / work_time, 1),
            taken_by_others=total - completed,
            cleaned_up=cleaned_up,
        )

    def _call(self, call: Call[T]) -> T:
        return run(self._connection, call)

    def _enqueue(self, number: int) -> None:
        self._call(produce.enqueue_many([self._job] * number))

    def _enqueue_in_bulk(self) -> None:
        for start in range(0, self._jobs, _BULK):
            self._enqueue(min(_BULK, self._jobs - start))

    def _work(self) -> int:
        completed, position = 0, None
        while True:
            claim = self._call(work.claim(_TASK, [self._queue], self._batch, [_TASK], position))
            position = claim.position
            if not claim.jobs:
                return completed
            ids = [job.job_id for job in claim.jobs]
            self._call(work.complete(_TASK, ids, [job.attempt for job in claim.jobs]))
            completed += len(ids)

    def _remove_traces(self, since: datetime) -> bool:
        try:
            self._call(bench.remove_traces(self._queue, _TASK, since))
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

"""/metrics for Prometheus: what the views for operators say, read at most once in five seconds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator
from typing import Any, Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from trunkline.db.calls import metrics as calls
from trunkline.http.caller import CallerSession

__all__ = ["Metrics"]

_FRESH: Final = 5.0
# Buckets of limits with keys may be many; the fullest are the ones to know about.
_MOST: Final = 200


class Metrics:
    """Reads the database for all that ask, one at a time."""

    def __init__(self, session: CallerSession) -> None:
        self._session = session
        self._lock = asyncio.Lock()
        self._read_at = -_FRESH
        self._text = b""

    async def text(self) -> bytes:
        """Return the metrics in the text format of Prometheus."""
        async with self._lock:
            if time.monotonic() - self._read_at >= _FRESH:
                registry = CollectorRegistry(auto_describe=False)
                registry.register(_Read([*await self._read()]))
                self._text = generate_latest(registry)
                self._read_at = time.monotonic()
            return self._text

    async def _read(self) -> Iterable[Metric]:
        session, operator = self._session, self._session.operator
        families: list[Metric] = []
        families += _queues(await operator.queues.list())
        families += _finished(await session.run(calls.finished_jobs()))
        families += _dead(await operator.dead.groups(limit=100))
        families += _limits(await operator.limits.list())
        families += _quotas((await operator.quotas.list())[:_MOST])
        families += _breakers((await operator.breakers.list())[:_MOST])
        families += _duties(await operator.duties.list())
        families += _workers(await operator.workers.list())
        families += _connections(await session.run(calls.connections()))
        families += _holders(await session.run(calls.snapshot_holders()))
        families += _tables(await session.run(calls.table_health()))
        return families


class _Read(Collector):
    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _gauge(
    name: str,
    text: str,
    labels: list[str],
    values: Iterable[tuple[list[Any], Any]],
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"trunkline_{name}", text, labels=labels)
    for of_labels, value in values:
        if value is not None:
            family.add_metric([str(label) for label in of_labels], float(value))
    return family


def _counter(
    name: str, text: str, labels: list[str], values: Iterable[tuple[list[Any], Any]]
) -> CounterMetricFamily:
    family = CounterMetricFamily(f"trunkline_{name}", text, labels=labels)
    for of_labels, value in values:
        family.add_metric([str(label) for label in of_labels], float(value))
    return family


def _queues(rows: list[Any]) -> Iterator[Metric]:
    states = ("ready", "scheduled", "blocked", "running", "dead")
    yield _gauge(
        "jobs",
        "Jobs by queue and state, each counted up to a bound.",
        ["queue", "state"],
        [([row.queue, state], getattr(row, state)) for row in rows for state in states],
    )
    yield _gauge(
        "queue_paused",
        "Whether claims from the queue are paused.",
        ["queue"],
        [([row.queue], row.paused) for row in rows],
    )
    yield _gauge(
        "oldest_ready_age_seconds",
        "How long the oldest ready job of the queue has waited.",
        ["queue"],
        [
            ([row.queue], row.oldest_ready_age.total_seconds())
            for row in rows
            if row.oldest_ready_age is not None
        ],
    )


def _finished(rows: list[calls.FinishedJobs]) -> Iterator[Metric]:
    yield _gauge(
        "finished_jobs_last_minute",
        "Jobs that ended in the last whole minute.",
        ["task", "queue", "state"],
        [
            ([row.task, row.queue, state], getattr(row, state))
            for row in rows
            for state in ("completed", "cancelled")
        ],
    )
    for name, text in (("wait", "waited until their start"), ("run", "ran")):
        yield _gauge(
            f"mean_{name}_seconds",
            f"How long the jobs that ended in the last whole minute {text}, on average.",
            ["task", "queue"],
            [([row.task, row.queue], getattr(row, f"mean_{name}")) for row in rows],
        )


def _dead(rows: list[Any]) -> Iterator[Metric]:
    by_task: dict[str, int] = {}
    for row in rows:
        for task, jobs in row.tasks.items():
            by_task[task] = by_task.get(task, 0) + jobs
    yield _gauge(
        "dead_letters",
        "Dead letters by task, of the newest of the largest groups.",
        ["task"],
        [([task], jobs) for task, jobs in by_task.items()],
    )


def _limits(rows: list[Any]) -> Iterator[Metric]:
    yield _gauge(
        "limit_fullness",
        "How full the fullest part of the limit is, from 0 to 1.",
        ["limit"],
        [([row.name], row.fullness) for row in rows],
    )
    yield _gauge(
        "limit_in_use", "Slots of the limit in use.", ["limit"],
        [([row.name], row.in_use) for row in rows],
    )  # fmt: skip
    yield _gauge(
        "limit_waiting_jobs", "Jobs that wait for the limit, counted up to a bound.", ["limit"],
        [([row.name], row.waiting) for row in rows],
    )  # fmt: skip
    yield _gauge(
        "limit_set_aside_jobs", "Jobs that cost more than the limit ever allows.", ["limit"],
        [([row.name], row.set_aside) for row in rows],
    )  # fmt: skip


def _quotas(rows: list[Any]) -> Iterator[Metric]:
    for name, text in (
        ("quota", "What the quota allows."),
        ("spent", "What of the quota is spent."),
        ("remaining", "What of the quota is left."),
    ):
        yield _gauge(
            name if name == "quota" else f"quota_{name}",
            text,
            ["limit", "bucket", "unit"],
            [([row.limit, row.name, row.unit], getattr(row, name)) for row in rows],
        )


def _breakers(rows: list[Any]) -> Iterator[Metric]:
    yield _gauge(
        "breaker_open",
        "Whether the breaker keeps jobs from starting.",
        ["limit", "bucket"],
        [([row.limit, row.name], row.state != "closed") for row in rows],
    )


def _duties(rows: list[Any]) -> Iterator[Metric]:
    yield _gauge(
        "duty_late", "Whether the duty should have run by now.", ["duty"],
        [([row.duty], row.enabled and row.late) for row in rows],
    )  # fmt: skip
    yield _counter(
        "duty_runs", "Runs of the duty.", ["duty"], [([row.duty], row.runs) for row in rows]
    )
    yield _counter(
        "duty_failures", "Runs of the duty that failed.", ["duty"],
        [([row.duty], row.failures) for row in rows],
    )  # fmt: skip


def _workers(rows: list[Any]) -> Iterator[Metric]:
    counts: dict[tuple[str, str], int] = {}
    for row in rows:
        key = (row.state, "yes" if row.alive else "no")
        counts[key] = counts.get(key, 0) + 1
    yield _gauge(
        "workers",
        "Worker processes by state, and whether their pulse is there.",
        ["state", "alive"],
        [([*key], count) for key, count in counts.items()],
    )
    yield _gauge(
        "worker_resident_memory_bytes",
        "Memory of the worker process, as its last pulse reported it.",
        ["worker"],
        [([row.worker], (row.detail or {}).get("memory")) for row in rows[:_MOST]],
    )


def _connections(rows: list[calls.Connections]) -> Iterator[Metric]:
    yield _gauge(
        "connections", "Sessions of the database server by login.", ["login"],
        [([row.role], row.sessions) for row in rows],
    )  # fmt: skip
    yield _gauge(
        "connections_allowed",
        "Sessions that the database server takes.",
        [],
        [([], row.most) for row in rows[:1]],
    )


def _holders(rows: list[calls.SnapshotHolder]) -> Iterator[Metric]:
    oldest: dict[tuple[str, str], int] = {}
    for row in rows:
        oldest[row.kind, row.name] = max(row.age, oldest.get((row.kind, row.name), 0))
    yield _gauge(
        "snapshot_age_transactions",
        "How many transactions old the snapshot is that keeps dead rows from being removed.",
        ["kind", "name"],
        [([*key], age) for key, age in oldest.items()],
    )


def _tables(rows: list[calls.TableHealth]) -> Iterator[Metric]:
    for name, text in (
        ("live", "Rows of the table, estimated."),
        ("dead", "Dead rows of the table, estimated."),
    ):
        yield _gauge(
            f"table_{name}_rows",
            text,
            ["table"],
            [([row.table], getattr(row, name)) for row in rows],
        )
    yield _gauge(
        "table_bytes", "Size of the table with its indexes.", ["table"],
        [([row.table], row.bytes) for row in rows],
    )  # fmt: skip

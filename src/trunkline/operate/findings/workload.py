"""Workers, jobs and disk space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from trunkline.db.calls.checks import ReadyTask, TableSize
from trunkline.model import Finding, WorkerStatus
from trunkline.telemetry import count, size

__all__ = [
    "dead_letter_finding",
    "disk_finding",
    "store_finding",
    "unserved_finding",
    "worker_finding",
]

_SHOWN: Final = 3


def worker_finding(workers: Sequence[WorkerStatus]) -> Finding:
    """Return how many workers are alive, and which are silent."""
    alive = [worker for worker in workers if worker.alive]
    silent = [worker.worker for worker in workers if not worker.alive]
    if silent:
        more = f" and {len(silent) - _SHOWN} more" if len(silent) > _SHOWN else ""
        return Finding(
            "workers",
            "warn",
            f"{len(alive)} alive, {len(silent)} silent: {', '.join(silent[:_SHOWN])}{more}",
            "The duty reclaim recovers their jobs; see: trunkline workers list",
        )
    if not alive:
        return Finding("workers", "warn", "none", "Start one with: trunkline worker APP")
    running = sum(worker.running for worker in alive)
    return Finding("workers", "ok", f"{len(alive)} alive, {count(running, 'job')} running")


def store_finding(workers: Sequence[WorkerStatus]) -> Finding:
    """Return where live workers put files; a folder cannot be shared by two machines."""
    hosts: dict[str, set[str]] = {}
    for worker in workers:
        store = (worker.detail or {}).get("store")
        if worker.alive and isinstance(store, str):
            hosts.setdefault(store, set()).add(worker.host or "unknown")
    if not hosts:
        return Finding("store", "ok", "no live worker has one")
    for store, names in sorted(hosts.items()):
        if store.startswith("file:") and len(names) > 1:
            return Finding(
                "store",
                "warn",
                f"{store} is a folder, and workers on {', '.join(sorted(names)[:_SHOWN])} use it",
                "Mount the same file system on all of them, or use a bucket: s3://bucket/prefix",
            )
    if len(hosts) > 1:
        return Finding(
            "store",
            "warn",
            f"live workers use different stores: {', '.join(sorted(hosts)[:_SHOWN])}",
            "Set the same TRUNKLINE_STORE everywhere: files are read where they were written.",
        )
    return Finding("store", "ok", next(iter(hosts)))


def unserved_finding(tasks: Sequence[ReadyTask]) -> Finding:
    """Return the ready jobs that no live worker takes."""
    unserved = [task for task in tasks if not task.served]
    sample = _sample(tasks)
    if not unserved:
        message = f"none: a live worker takes each ready job{sample}"
        return Finding("unserved jobs", "ok", message)
    named = ", ".join(f"{task.task} in {task.queue} ({task.jobs:,})" for task in unserved[:_SHOWN])
    more = f" and {len(unserved) - _SHOWN} more" if len(unserved) > _SHOWN else ""
    return Finding(
        "unserved jobs",
        "warn",
        f"no live worker takes {named}{more}{sample}",
        "Start a worker that serves these queues and tasks: trunkline worker APP --queues NAMES",
    )


def dead_letter_finding(letters: int, limit: int) -> Finding:
    """Return how many dead letters are not acknowledged; they were read up to a limit."""
    if not letters:
        return Finding("dead letters", "ok", "all acknowledged")
    return Finding(
        "dead letters",
        "warn",
        f"{letters:,}{' or more' if letters >= limit else ''} not acknowledged",
        "See them with: trunkline dead list; then replay, discard or acknowledge them.",
    )


def disk_finding(tables: Sequence[TableSize]) -> Finding:
    """Return how much disk space the tables take."""
    total = size(sum(table.bytes for table in tables))
    largest = ", ".join(f"{table.table} {size(table.bytes)}" for table in tables[:_SHOWN])
    return Finding("disk", "ok", f"{total} in {count(len(tables), 'table')}; {largest}")


def _sample(tasks: Sequence[ReadyTask]) -> str:
    """Return a remark if not every ready job was checked."""
    queues = {task.queue for task in tasks if task.more}
    if not queues:
        return ""
    where = count(len(queues), "queue")
    return f" (checked the first {tasks[0].counted_up_to:,} ready jobs of {where} with more)"

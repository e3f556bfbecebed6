"""The jobs that this process holds: claimed, and not yet ended in the database."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Final
from uuid import UUID

from trunkline.model import ClaimedJob

__all__ = ["HeldJob", "Late", "Roster", "Stop", "check_start"]

# Seconds between heartbeats of a job, or a third of its lease if that is shorter.
_BEAT: Final = 15.0
_TAKEN_UP_LATE: Final = 10.0


class Stop(Enum):
    """Why a running handler is interrupted."""

    CANCELLED = "cancelled"
    LOST = "lost"
    HARD_LIMIT = "hard limit"
    SHUTDOWN = "shutdown"


class Late(Exception):
    """A limited job did not start within the time for which its charge is valid."""


def check_start(start_before: float | None) -> None:
    """Raise Late if it is too late for a handler to start.

    The window counts the call from the claim on. If the handler started later, the provider might
    see more calls than the limit allows.
    """
    if start_before is not None and time.monotonic() > start_before:
        raise Late


class HeldJob:
    """One claimed job and its state in this process. All times are monotonic."""

    __slots__ = (
        "_limits",
        "beat_now",
        "ended_in_transaction",
        "gone",
        "job",
        "last_beat",
        "runner",
        "start_before",
        "started",
        "stop",
    )

    def __init__(self, job: ClaimedJob, now: float, start_before: float | None = None) -> None:
        self.job = job
        self.last_beat = now
        # Set for limited jobs only.
        self.start_before = start_before
        # Whether to send a heartbeat now, before the next one is due.
        self.beat_now = False
        self._limits: tuple[float, float] | None = None
        self.started: float | None = None
        self.runner: asyncio.Task[None] | None = None
        self.stop: Stop | None = None
        # A heartbeat reported that the server has no such job.
        self.gone = False
        # Set by ctx.transaction(), which has already completed the job.
        self.ended_in_transaction = False

    @property
    def beat_every(self) -> float:
        """Seconds between heartbeats."""
        return (self._limits or self._measure())[0]

    @property
    def deadline(self) -> float:
        """When the attempt reaches its hard limit."""
        return (self._limits or self._measure())[1]

    def _measure(self) -> tuple[float, float]:
        """Compute both on first use: most jobs end before they are needed."""
        job = self.job
        lease = (job.lease_expires_at - job.claimed_at).total_seconds()
        limit = (job.hard_deadline - job.claimed_at).total_seconds()
        self._limits = (min(_BEAT, lease / 3), self.last_beat + limit)
        return self._limits


class Roster:
    """The held jobs by id. Heartbeats read it from another thread, so copies take a lock."""

    def __init__(self) -> None:
        self._held: dict[UUID, HeldJob] = {}
        # Called with an attempt when this process has claimed the next attempt of the same job.
        self.on_replaced: Callable[[HeldJob], None] | None = None
        self._lock = threading.Lock()
        # While a rescan is in progress, this process may have claimed jobs that are not listed yet.
        self.rescanning = False
        # While unlisted jobs are handed back, no rescan may start.
        self.releasing = False
        # When to ask the engine for jobs of a claim whose answer was lost.
        self.checks: list[float] = []

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[HeldJob]:
        return iter(self.snapshot())

    def get(self, job_id: UUID) -> HeldJob | None:
        """Return the held job with this id, or None."""
        return self._held.get(job_id)

    def add(self, jobs: list[ClaimedJob], sent: float | None = None) -> list[HeldJob]:
        """Add claimed jobs; `sent` is when the claim was sent, in monotonic time."""
        now = time.monotonic()
        # Counted from when the claim was sent, which is before the engine read its clock.
        start = _start_before(jobs, now if sent is None else sent)
        new = [HeldJob(job, now, None if job.start_by is None else start) for job in jobs]
        with self._lock:
            earlier = [self._held.get(job.job_id) for job in jobs]
            for held in new:
                self._held[held.job.job_id] = held
        for lost in earlier:
            # Its lease expired while its handler runs, and nothing else would stop that handler.
            if lost is not None and self.on_replaced is not None:
                self.on_replaced(lost)
        return new

    def remove(self, jobs: Iterable[ClaimedJob]) -> None:
        """Remove jobs whose end is recorded, but keep a newer attempt of the same job."""
        with self._lock:
            for job in jobs:
                held = self._held.get(job.job_id)
                if held is not None and held.job.attempt == job.attempt:
                    del self._held[job.job_id]

    def doubt(self) -> None:
        """Schedule checks for jobs of a claim whose answer was lost.

        The first check is immediate. The second is later, because the abandoned backend may still
        have been running at the first.
        """
        now = time.monotonic()
        self.checks = [now, now + _TAKEN_UP_LATE]

    def snapshot(self) -> list[HeldJob]:
        """Return a copy of the list."""
        with self._lock:
            return list(self._held.values())


def _start_before(jobs: list[ClaimedJob], sent: float) -> float | None:
    """Return the time by which the limited jobs of a claim must start; it is the same for all."""
    for job in jobs:
        if job.start_by is not None:
            return sent + (job.start_by - job.claimed_at).total_seconds()
    return None

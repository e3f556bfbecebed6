"""The jobs this process holds: claimed and not yet ended in the database."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Final
from uuid import UUID

from trunkline.model import ClaimedJob

__all__ = ["Held", "Late", "Roster", "Stop", "check_start"]

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
    """A limited job did not start within the time that its charge is good for."""


def check_start(start_before: float | None) -> None:
    """Raise Late if a handler may not begin any more.

    Its window counts the call from its claim on; begun later, the provider might see one too many.
    """
    if start_before is not None and time.monotonic() > start_before:
        raise Late


class Held:
    """One claimed job and where it stands here. Times are monotonic, never the clock's."""

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
        # Of a limited job; of others there is none.
        self.start_before = start_before
        # There is reason to ask the engine before the next beat is due.
        self.beat_now = False
        self._limits: tuple[float, float] | None = None
        self.started: float | None = None
        self.runner: asyncio.Task[None] | None = None
        self.stop: Stop | None = None
        # A heartbeat reported that the server has no such job.
        self.gone = False
        # Set by ctx.transaction(): there is nothing left to report.
        self.ended_in_transaction = False

    @property
    def beat_every(self) -> float:
        """Seconds between heartbeats."""
        return (self._limits or self._measure())[0]

    @property
    def deadline(self) -> float:
        """When the attempt is interrupted whatever it does."""
        return (self._limits or self._measure())[1]

    def _measure(self) -> tuple[float, float]:
        """Not at the claim: most jobs have ended before anybody asks."""
        job = self.job
        lease = (job.lease_expires_at - job.claimed_at).total_seconds()
        limit = (job.hard_deadline - job.claimed_at).total_seconds()
        self._limits = (min(_BEAT, lease / 3), self.last_beat + limit)
        return self._limits


class Roster:
    """All of them, by job. The heart reads it from its own thread, hence the lock on copies."""

    def __init__(self) -> None:
        self._held: dict[UUID, Held] = {}
        # Told of an attempt when this process has claimed the next one of the same job.
        self.on_replaced: Callable[[Held], None] | None = None
        self._lock = threading.Lock()
        # While a claim beside the claimer's is under way, jobs may be ours that are not here yet.
        self.looking = False
        # And while those that are not here are handed back, no other claim may be under way.
        self.releasing = False
        # When to look for jobs of an answer that was lost.
        self.checks: list[float] = []

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Held]:
        return iter(self.snapshot())

    def get(self, job_id: UUID) -> Held | None:
        """The one of that job, if this process holds it."""
        return self._held.get(job_id)

    def add(self, jobs: list[ClaimedJob], sent: float | None = None) -> list[Held]:
        """Take claimed jobs in; `sent` is when they were asked for, by monotonic time."""
        now = time.monotonic()
        # Counted from when the claim was sent, which was before the engine's clock was read.
        start = _start_before(jobs, now if sent is None else sent)
        new = [Held(job, now, None if job.start_by is None else start) for job in jobs]
        with self._lock:
            earlier = [self._held.get(job.job_id) for job in jobs]
            for held in new:
                self._held[held.job.job_id] = held
        for lost in earlier:
            # Its lease was over before its handler was: nobody else would ever stop it.
            if lost is not None and self.on_replaced is not None:
                self.on_replaced(lost)
        return new

    def remove(self, jobs: Iterable[ClaimedJob]) -> None:
        """Forget jobs whose end is recorded; not a newer attempt of one that came since."""
        with self._lock:
            for job in jobs:
                held = self._held.get(job.job_id)
                if held is not None and held.job.attempt == job.attempt:
                    del self._held[job.job_id]

    def doubt(self) -> None:
        """A claim's answer was lost, with jobs in it that nobody here knows of.

        Looked for at once, and again when a server that takes the call up late has done so.
        """
        now = time.monotonic()
        self.checks = [now, now + _TAKEN_UP_LATE]

    def snapshot(self) -> list[Held]:
        """A copy."""
        with self._lock:
            return list(self._held.values())


def _start_before(jobs: list[ClaimedJob], sent: float) -> float | None:
    """Until when the limited ones of a claim must start: one moment for all of them."""
    for job in jobs:
        if job.start_by is not None:
            return sent + (job.start_by - job.claimed_at).total_seconds()
    return None

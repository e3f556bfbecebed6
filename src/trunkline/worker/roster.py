"""The jobs this process holds: claimed and not yet ended in the database."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from enum import Enum
from typing import Final
from uuid import UUID

from trunkline.model import ClaimedJob

__all__ = ["Held", "Roster", "Stop"]

# A job is heartbeated when it is this old at the latest, or a third of its lease (RC-30).
_BEAT: Final = 15.0


class Stop(Enum):
    """Why a running handler is interrupted."""

    CANCELLED = "cancelled"
    LOST = "lost"
    HARD_LIMIT = "hard limit"
    SHUTDOWN = "shutdown"


class Held:
    """One claimed job and where it stands here. Times are monotonic, never the clock's."""

    __slots__ = (
        "beat_every",
        "deadline",
        "ended_in_transaction",
        "job",
        "last_beat",
        "runner",
        "started",
        "stop",
    )

    def __init__(self, job: ClaimedJob, now: float) -> None:
        self.job = job
        lease = (job.lease_expires_at - job.claimed_at).total_seconds()
        self.beat_every = min(_BEAT, lease / 3)
        self.last_beat = now
        self.deadline = now + (job.hard_deadline - job.claimed_at).total_seconds()
        self.started: float | None = None
        self.runner: asyncio.Task[None] | None = None
        self.stop: Stop | None = None
        # Set by ctx.transaction(): there is nothing left to report.
        self.ended_in_transaction = False


class Roster:
    """All of them, by job. The heart reads it from its own thread, hence the lock on copies."""

    def __init__(self) -> None:
        self._held: dict[UUID, Held] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Held]:
        return iter(self.snapshot())

    def get(self, job_id: UUID) -> Held | None:
        """The one of that job, if this process holds it."""
        return self._held.get(job_id)

    def add(self, jobs: list[ClaimedJob]) -> list[Held]:
        """Take claimed jobs in."""
        now = time.monotonic()
        new = [Held(job, now) for job in jobs]
        with self._lock:
            for held in new:
                self._held[held.job.job_id] = held
        return new

    def remove(self, job_id: UUID, attempt: int) -> None:
        """Forget a job whose end is recorded; not a newer attempt of it that came since."""
        held = self._held.get(job_id)
        if held is not None and held.job.attempt == attempt:
            with self._lock:
                self._held.pop(job_id, None)

    def snapshot(self) -> list[Held]:
        """A copy."""
        with self._lock:
            return list(self._held.values())

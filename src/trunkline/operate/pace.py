"""The pace of a replay of dead letters, and when it stops."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final
from uuid import UUID

from trunkline.errors import InvalidArgument
from trunkline.model import BulkChange, Job, JobState, PacedReplay

__all__ = ["Pace", "ReplayTally"]

# The most jobs that one transaction replays, or whose state one query reads.
_MOST: Final = 1000


class Pace:
    """A rate per second as a batch and the time between batches."""

    def __init__(self, rate: float) -> None:
        if not 0 < rate <= 100_000:
            raise InvalidArgument(
                "rate is out of range",
                hint="Pass dead letters per second, more than 0 and at most 100,000.",
                detail={"rate": rate},
            )
        self.batch = min(max(1, round(rate)), _MOST)
        self.interval = self.batch / rate


class ReplayTally:
    """Counts how replayed jobs ended."""

    def __init__(self, stop_at: float | None, at_least: int) -> None:
        if stop_at is not None and not 0 <= stop_at < 1:
            raise InvalidArgument(
                "stop_at is out of range",
                hint="Pass a share from 0 up to but not including 1, for example 0.1 for 10 %.",
                detail={"stop_at": stop_at},
            )
        self._stop_at = stop_at
        self._at_least = at_least
        self._outcomes: Counter[str] = Counter()
        # Jobs that may still fail again, those whose state was read least recently first.
        self._open: dict[UUID, None] = {}
        self._replayed = self._completed = self._failed = 0

    def add(self, change: BulkChange) -> None:
        """Count a batch."""
        self._outcomes.update(change.outcomes)
        self._replayed += len(change.job_ids)
        self._open.update(dict.fromkeys(change.job_ids))

    def open_jobs(self) -> Sequence[UUID]:
        """Return jobs that may still fail again, at most 1,000."""
        return list(self._open)[:_MOST]

    def settle(self, job_ids: Iterable[UUID], jobs: Iterable[Job]) -> None:
        """Count jobs by their present states. A job that is gone is not counted."""
        states = {job.id: job for job in jobs}
        for job_id in job_ids:
            self._open.pop(job_id, None)
            job = states.get(job_id)
            if job is None:
                continue
            if job.failures > 0 or job.state is JobState.DEAD:
                self._failed += 1
            elif job.state in {JobState.COMPLETED, JobState.CANCELLED}:
                self._completed += 1
            else:
                self._open[job_id] = None

    def must_stop(self) -> bool:
        """Whether too many of the replayed jobs have failed again."""
        return (
            self._stop_at is not None
            and self._replayed >= self._at_least
            and self._failed > self._stop_at * self._replayed
        )

    def progress(self, cursor: str | None) -> PacedReplay:
        """Return the progress of the replay."""
        return PacedReplay(
            replayed=self._replayed,
            completed=self._completed,
            failed=self._failed,
            outcomes=dict(self._outcomes),
            stopped=self.must_stop(),
            cursor=cursor,
        )

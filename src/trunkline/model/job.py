"""Jobs as the engine shows them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple
from uuid import UUID

__all__ = [
    "GONE",
    "ChangedJob",
    "ClaimedJob",
    "Enqueued",
    "EnqueuedBatch",
    "Explanation",
    "Job",
    "JobState",
    "Verdict",
]


class JobState(StrEnum):
    """Where a job is; the last three are final."""

    BLOCKED = "blocked"
    SCHEDULED = "scheduled"
    READY = "ready"
    RUNNING = "running"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    DEAD = "dead"

    @property
    def final(self) -> bool:
        """Whether the job has ended."""
        return self in {JobState.COMPLETED, JobState.CANCELLED, JobState.DEAD}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Everything the engine knows of one job.

    Lists leave out the payload, the result and the errors of attempts; `get` has them.
    """

    # <job model>
    id: UUID
    state: JobState
    task: str
    queue: str
    priority: int
    tenant: str | None = None
    payload: Mapping[str, Any] | None = None
    result: Any = None
    attempt: int = 0
    failures: int = 0
    crashes: int = 0
    deferrals: int = 0
    max_attempts: int | None = None
    created_at: datetime
    run_at: datetime | None = None
    claimed_at: datetime | None = None
    heartbeat_at: datetime | None = None
    lease_expires_at: datetime | None = None
    hard_deadline: datetime | None = None
    cancel_requested_at: datetime | None = None
    finished_at: datetime | None = None
    acknowledged_at: datetime | None = None
    worker: str | None = None
    progress: int | None = None
    phase: str | None = None
    message: str | None = None
    reason: str | None = None
    unique_key: str | None = None
    correlation_id: str | None = None
    retry_of: UUID | None = None
    tags: tuple[str, ...] = ()
    last_error: Mapping[str, Any] | None = None
    errors: tuple[Mapping[str, Any], ...] = ()
    expires_at: datetime | None = None
    error_group: str | None = None
    # </job>


class Enqueued(NamedTuple):
    """Answer of enqueue."""

    job_id: UUID
    created: bool
    state: str
    run_at: datetime


class EnqueuedBatch(NamedTuple):
    """Answer of enqueue_batch; the ids are bytes, since few of thousands are ever looked at."""

    job_ids: list[bytes]
    state: str
    run_at: datetime


class ClaimedJob(NamedTuple):
    """What a worker gets of a job: no more than running it takes."""

    job_id: UUID
    attempt: int
    task: str
    payload: str
    queue: str
    tenant: str | None
    correlation_id: str | None
    tags: list[str] | None
    failures: int
    max_attempts: int
    claimed_at: datetime
    lease_expires_at: datetime
    hard_deadline: datetime
    last_error: Mapping[str, Any] | None
    # Until when its handler must begin for its charge to count where it was made; None: no limits.
    start_by: datetime | None = None


# The state in a verdict `lost` if the server has no such job.
GONE: Final = "gone"


class Verdict(NamedTuple):
    """What became of one job of a batch: ok, lost, cancel or already."""

    job_id: UUID
    attempt: int
    verdict: str
    state: str | None
    run_at: datetime | None
    # The worker with other code for which hand_over put the job back.
    other_worker: str | None = None


class ChangedJob(NamedTuple):
    """What a request about one job did."""

    job_id: UUID
    outcome: str
    state: str


class Explanation(NamedTuple):
    """One reason why a job is not running, until when, and what stands behind it."""

    reason: str
    until: datetime | None
    detail: Mapping[str, Any]

"""Jobs as the engine returns them."""

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
    """The state of a job; the last three are final."""

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
    """All fields of one job.

    Lists leave out the payload, the result and the errors of attempts; `get` returns them.
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
    workflow_id: UUID | None = None
    workflow_step: int | None = None
    workflow_item: int | None = None
    # </job>


class Enqueued(NamedTuple):
    """The result of enqueue."""

    job_id: UUID
    created: bool
    state: str
    run_at: datetime


class EnqueuedBatch(NamedTuple):
    """The result of enqueue_batch. Ids are bytes, because callers use few of thousands."""

    job_ids: list[bytes]
    state: str
    run_at: datetime


class ClaimedJob(NamedTuple):
    """A claimed job, with only the fields that a worker needs to run it."""

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
    # When its handler must have started for its charge to be valid; None: no limits.
    start_by: datetime | None = None
    # The workflow that it belongs to; None: a plain job.
    workflow_id: UUID | None = None


# The state in a verdict `lost` if the server has no such job.
GONE: Final = "gone"


class Verdict(NamedTuple):
    """The outcome for one job of a batch: ok, lost, cancel or already."""

    job_id: UUID
    attempt: int
    verdict: str
    state: str | None
    run_at: datetime | None
    # The worker with other code for which hand_over put the job back.
    other_worker: str | None = None


class ChangedJob(NamedTuple):
    """The outcome of a request about one job."""

    job_id: UUID
    outcome: str
    state: str


class Explanation(NamedTuple):
    """One reason why a job is not running, until when it applies, and details."""

    reason: str
    until: datetime | None
    detail: Mapping[str, Any]

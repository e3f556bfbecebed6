"""What happened to jobs lately."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

__all__ = ["ActivityLine", "Event", "RecentJob", "Recently"]


class RecentJob(NamedTuple):
    """A job that was made, claimed or ended lately."""

    job_id: UUID
    state: str
    task: str
    queue: str
    tenant: str | None
    attempt: int
    created_at: datetime
    run_at: datetime | None
    claimed_at: datetime | None
    finished_at: datetime | None
    worker: str | None
    reason: str | None
    last_error: dict[str, Any] | None


class Event(NamedTuple):
    """Something recorded about a job."""

    at: datetime
    kind: str
    job_id: UUID
    to_state: str | None
    task: str
    queue: str
    tenant: str | None
    attempt: int
    worker: str | None
    detail: dict[str, Any] | None


class Recently(NamedTuple):
    """The engine's time at the look, and what it found, in no order."""

    now: datetime
    jobs: list[RecentJob]
    events: list[Event]


class ActivityLine(NamedTuple):
    """Something that happened to a job."""

    at: datetime
    event: str
    job_id: UUID
    attempt: int
    state: str | None
    task: str
    queue: str
    tenant: str | None
    worker: str | None
    took: timedelta | None
    run_at: datetime | None
    reason: str | None
    error: Mapping[str, Any] | None
    detail: Mapping[str, Any] | None

"""Answers of the API as values. Fields that a newer server adds are ignored."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from trunkline.model import Job, WorkflowState

__all__ = [
    "AcceptedJob",
    "AcceptedJobs",
    "AcceptedWorkflow",
    "ArtifactPage",
    "ChangedItem",
    "JobPage",
    "Link",
    "SentEvent",
    "StoredArtifact",
    "WorkflowSummary",
]


class AcceptedJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that was accepted. `created` is false if a key returned one that already existed."""

    job_id: UUID
    created: bool
    state: str
    run_at: datetime
    href: str


class AcceptedJobs(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs that were accepted, in the order of the request."""

    jobs: list[AcceptedJob]


class JobPage(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs, newest first, and the cursor of the next page; None at the end."""

    jobs: list[Job]
    next: str | None = None


class ChangedItem(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a request about a job or workflow."""

    outcome: str
    state: str | None = None


class AcceptedWorkflow(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow that was accepted."""

    workflow_id: UUID
    created: bool
    state: str
    jobs: int
    href: str


class WorkflowSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow with its progress; `steps` are as the API returns them."""

    id: UUID
    name: str
    state: WorkflowState
    jobs: int
    completed: int
    failed: int
    cancelled: int
    created_at: datetime
    tenant: str | None = None
    ended_at: datetime | None = None
    reason: str | None = None
    progress: Any = None
    steps: list[dict[str, Any]] = msgspec.field(default_factory=list)


class StoredArtifact(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a completed job."""

    id: UUID
    job_id: UUID
    name: str
    kind: str
    content_type: str
    bytes: int
    sha256: str
    published_at: datetime
    workflow_id: UUID | None = None
    expires_at: datetime | None = None
    deleted_at: datetime | None = None


class ArtifactPage(msgspec.Struct, frozen=True, kw_only=True):
    """Artifacts, oldest first."""

    artifacts: list[StoredArtifact]
    next: UUID | None = None


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """A link that works without signing in."""

    url: str
    expires_at: datetime


class SentEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What sending an event did: `delivered`, `stored` or `already`."""

    outcome: str
    resumed: int
    sent_at: datetime

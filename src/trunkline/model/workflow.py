"""Workflows as the engine returns them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

__all__ = [
    "ChangedWorkflow",
    "FailedItem",
    "StartedWorkflow",
    "StepStatus",
    "WorkflowEnd",
    "WorkflowPlace",
    "WorkflowProgress",
    "WorkflowState",
    "WorkflowStatus",
]


class WorkflowState(StrEnum):
    """The state of a workflow; the last three are final."""

    # No job has started.
    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        """Whether the workflow has ended."""
        return self in {WorkflowState.COMPLETED, WorkflowState.FAILED, WorkflowState.CANCELLED}


class StartedWorkflow(NamedTuple):
    """The result of start_workflow."""

    workflow_id: UUID
    # False if a key returned a workflow that already existed.
    created: bool
    state: str
    # How many jobs were stored. Maps add theirs later.
    jobs: int


class ChangedWorkflow(NamedTuple):
    """The outcome of a request about one workflow."""

    workflow_id: UUID
    outcome: str
    # None if it was deleted.
    state: str | None
    # How many jobs it concerned.
    jobs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStatus:
    """One step of a workflow, and how many of its jobs have ended."""

    name: str
    task: str
    kind: str
    state: str
    # None until a map knows the list.
    items: int | None = None
    completed: int = 0
    # How many of its jobs are dead or were cancelled.
    not_completed: int = 0
    after: tuple[str, ...] = ()
    # The step whose results it has one job each for; None unless it is a map.
    map_over: str | None = None
    phase: str | None = None
    reason: str | None = None
    ended_at: datetime | None = None


class WorkflowProgress(NamedTuple):
    """How far a workflow is."""

    state: WorkflowState
    # From 0 to 100; never falls.
    percent: int
    phase: str | None = None
    message: str | None = None
    # Estimated seconds until the end, from earlier workflows of the same name.
    remaining: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowStatus:
    """One workflow. Lists leave out the steps and params; `get` returns them."""

    id: UUID
    name: str
    kind: str
    state: WorkflowState
    tenant: str | None = None
    created_at: datetime
    ended_at: datetime | None = None
    deadline: datetime | None = None
    cancel_requested_at: datetime | None = None
    # How often it was started: once, and again by each retry.
    generation: int = 1
    # How many jobs it has; maps add theirs when they know the list.
    jobs: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    reason: str | None = None
    unique_key: str | None = None
    correlation_id: str | None = None
    tags: tuple[str, ...] = ()
    params: Mapping[str, Any] | None = None
    rerun_of: UUID | None = None
    parent_job: UUID | None = None
    progress: WorkflowProgress | None = None
    steps: tuple[StepStatus, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkflowPlace:
    """The workflow of a running job, and the place of the job in it."""

    id: UUID
    name: str
    # How often the workflow was started: once, and again by each retry.
    generation: int
    # The name of the step.
    step: str
    # The index of the job in a set or a map, from 0; None for a single job.
    item: int | None = None
    params: Mapping[str, Any] | None = None
    # How many jobs each step has whose results this step may read.
    sets: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FailedItem:
    """A job of a workflow that is a dead letter or was cancelled."""

    step: str
    job: UUID | None = None
    # Its place in a set or a map, from 0; None for a single job.
    item: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class WorkflowEnd:
    """How a workflow ended, as an argument of a callback."""

    id: UUID
    name: str
    state: WorkflowState
    # How often the workflow was started: once, and again by each retry.
    generation: int = 1
    reason: str | None = None
    # The first hundred failed jobs.
    failed: tuple[FailedItem, ...] = field(default=())

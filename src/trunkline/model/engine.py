"""What the engine shows about queues, workers, schedules, settings, tasks and duties."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

__all__ = [
    "DutyRun",
    "DutyStatus",
    "HealthCheck",
    "QueueStatus",
    "ScheduleChange",
    "ScheduleStatus",
    "SettingStatus",
    "TaskStatus",
    "WorkerStatus",
    "WorkerTarget",
]


class QueueStatus(NamedTuple):
    """A queue with what waits and runs in it."""

    queue: str
    paused: bool
    paused_reason: str | None
    paused_at: datetime | None
    max_depth: int | None
    ready: int
    scheduled: int
    blocked: int
    running: int
    dead: int
    oldest_ready_at: datetime | None
    oldest_ready_age: timedelta | None
    ageing: bool
    # Jobs are counted up to this bound: a number that reaches it means that many or more.
    counted_up_to: int


class WorkerStatus(NamedTuple):
    """A worker process."""

    worker: str
    state: str
    alive: bool
    started_at: datetime
    seen_at: datetime
    pulse_interval: timedelta
    running: int
    host: str | None
    pid: int | None
    version: str | None
    queues: list[str] | None
    tasks: list[str] | None
    detail: Mapping[str, Any] | None


class WorkerTarget(NamedTuple):
    """How many worker processes are wanted for a queue and a set of tasks, and why."""

    queue: str
    # None: all tasks.
    tasks: list[str] | None
    wanted: int
    # Live workers that serve the queue with exactly these tasks.
    workers: int
    # Jobs that could start now, counted up to counted_up_to: those that a limit stops are left out.
    startable: int
    running: int
    # Since when so few jobs could start that fewer workers will be wanted.
    low_since: datetime | None
    counted_up_to: int


class ScheduleStatus(NamedTuple):
    """A schedule with its next due time and what it did last."""

    schedule: str
    cron: str
    time_zone: str
    task: str
    payload: Mapping[str, Any]
    queue: str | None
    priority: int | None
    tenant: str | None
    missed: str
    paused: bool
    next_run_at: datetime | None
    last_run_at: datetime | None
    last_job_id: UUID | None
    last_error: Any
    last_error_at: datetime | None
    skipped: int
    created_at: datetime
    updated_at: datetime


class SettingStatus(NamedTuple):
    """A setting with the value in force and where it comes from."""

    name: str
    value: str
    origin: str
    kind: str
    default_value: str
    minimum: str | None
    maximum: str | None
    description: str
    updated_at: datetime | None
    updated_by: str | None


class TaskStatus(NamedTuple):
    """A task with the policy in force, its limits and its schedules."""

    task: str
    queue: str
    profile: str
    lease: timedelta
    hard_limit: timedelta
    max_attempts: int
    priority: int
    backoff_base: timedelta
    backoff_factor: float
    backoff_cap: timedelta
    backoff_jitter: float
    lost_backoff: bool
    reclaim_on_worker_death: bool
    crash_limit: int | None
    unique_until: str
    dead_when_deferred: bool
    audit: bool
    registered_at: datetime
    updated_at: datetime
    # The task that this name is an old one of.
    alias_of: str | None
    # Names of limits with their {keys}, and what a job takes from them that does not state a cost.
    limits: list[str]
    cost: Mapping[str, int] | None
    # Cron expressions by the names of the schedules.
    schedules: Mapping[str, str]


class DutyStatus(NamedTuple):
    """A duty with its function, its last runs and whether it is late."""

    duty: str
    every: timedelta
    description: str
    started_at: datetime | None
    ended_at: datetime | None
    succeeded_at: datetime | None
    rows: int | None
    runs: int
    failures: int
    failures_in_a_row: int
    last_error: Mapping[str, Any] | None
    late: bool
    enabled: bool
    function: str


class DutyRun(NamedTuple):
    """What one duty did, or that it did not run because another session was running it."""

    duty: str
    ran: bool
    rows: int | None
    error: str | None


class ScheduleChange(NamedTuple):
    """A schedule after a change of it."""

    schedule: str
    created: bool
    paused: bool
    next_run_at: datetime | None


class HealthCheck(NamedTuple):
    """One line of trunkline.health()."""

    check: str
    ok: bool
    detail: Mapping[str, Any] | None

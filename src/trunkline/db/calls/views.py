"""The views an operator looks at, a row of each as a value with the view's own column names."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, LiteralString, NamedTuple
from uuid import UUID

from trunkline.db.call import Call, rows_of, scalar

__all__ = [
    "DeadLetter",
    "DutyRow",
    "QueueRow",
    "ScheduleRow",
    "SettingRow",
    "TaskRow",
    "WorkerRow",
    "clock",
    "dead_letters",
    "dead_letters_beyond",
    "duties",
    "queues",
    "schedules",
    "settings",
    "tasks",
    "workers",
]


_DEAD_COLUMNS: Final[LiteralString] = (
    "select job_id, task, queue, tenant, reason, died_at, attempt, failures, crashes,"
    " deferrals, max_attempts, worker, last_error, acknowledged_at, acknowledged_by,"
    " created_at, correlation_id, unique_key, tags from "
)
_DEAD_ROWS: Final[LiteralString] = "trunkline.dead_letters"
# All, and those that are not acknowledged; the condition is that of their partial index.
_DEAD_LOOKED_AT: Final[tuple[LiteralString, LiteralString]] = (
    """(
      select * from trunkline.dead_letters order by died_at desc
      limit greatest(%s::bigint, 20000)
    ) as d""",
    """(
      select * from trunkline.dead_letters where acknowledged_at is null order by died_at desc
      limit greatest(%s::bigint, 20000)
    ) as d""",
)
_DEAD_BEYOND: Final[LiteralString] = "select count(*) = greatest(%s::bigint, 20000) from "
_DEAD_FILTER: Final[LiteralString] = (
    " where (%s::uuid[] is null or job_id = any(%s::uuid[]))"
    " and (%s::text is null or task = %s) and (%s::text is null or queue = %s)"
    " and (%s::text is null or tenant = %s)"
    " and (%s::boolean is null or (acknowledged_at is not null) = %s)"
    " order by died_at desc, job_id desc limit %s::bigint"
)


class QueueRow(NamedTuple):
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


class WorkerRow(NamedTuple):
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


class DeadLetter(NamedTuple):
    """A job that used up its attempts or was refused for good."""

    job_id: UUID
    task: str
    queue: str
    tenant: str | None
    reason: str
    died_at: datetime
    attempt: int
    failures: int
    crashes: int
    deferrals: int
    max_attempts: int
    worker: str | None
    last_error: Mapping[str, Any] | None
    acknowledged_at: datetime | None
    acknowledged_by: str | None
    created_at: datetime
    correlation_id: str | None
    unique_key: str | None
    tags: list[str] | None


class ScheduleRow(NamedTuple):
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


class SettingRow(NamedTuple):
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


class TaskRow(NamedTuple):
    """A task with the policy in force."""

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


class DutyRow(NamedTuple):
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


def clock() -> Call[datetime]:
    """The engine's time, against which ages are told."""
    return Call("select trunkline.clock()", (), scalar)


def queues() -> Call[list[QueueRow]]:
    """Every queue, by name."""
    return Call(
        "select queue, paused, paused_reason, paused_at, max_depth, ready, scheduled, blocked,"
        " running, dead, oldest_ready_at, oldest_ready_age, ageing, counted_up_to"
        " from trunkline.queues order by queue",
        (),
        rows_of(QueueRow),
    )


def workers(*, everyone: bool) -> Call[list[WorkerRow]]:
    """Workers that are there or were lost, those that stopped too if asked; newest last."""
    return Call(
        "select worker, state, alive, started_at, seen_at, pulse_interval, running, host, pid,"
        " version, queues, tasks, detail from trunkline.workers"
        " where %s::boolean or state in ('active', 'draining') or running > 0"
        " order by started_at, worker",
        (everyone,),
        rows_of(WorkerRow),
    )


def dead_letters(
    *,
    jobs: Sequence[UUID] | None = None,
    task: str | None = None,
    queue: str | None = None,
    tenant: str | None = None,
    acknowledged: bool | None = None,
    limit: int | None = None,
) -> Call[list[DeadLetter]]:
    """Dead letters, newest first; of no more than the given ids, task, queue and tenant.

    With a limit, it searches the newest 20,000 (of those not acknowledged, if only these are
    wanted), so that the time does not depend on how many there are or match.
    """
    rows = _DEAD_ROWS if limit is None else _DEAD_LOOKED_AT[acknowledged is False]
    return Call(
        _DEAD_COLUMNS + rows + _DEAD_FILTER,
        (
            *(() if limit is None else (limit,)),
            *_twice(None if jobs is None else list(jobs)),
            *_twice(task),
            *_twice(queue),
            *_twice(tenant),
            *_twice(acknowledged),
            limit,
        ),
        rows_of(DeadLetter),
    )


def dead_letters_beyond(*, limit: int, acknowledged: bool | None) -> Call[bool]:
    """Whether there are more dead letters than a list with a limit reads."""
    rows = _DEAD_LOOKED_AT[acknowledged is False]
    return Call(_DEAD_BEYOND + rows, (limit, limit), scalar)


def schedules() -> Call[list[ScheduleRow]]:
    """Every schedule, by name."""
    return Call(
        "select schedule, cron, time_zone, task, payload, queue, priority, tenant, missed, paused,"
        " next_run_at, last_run_at, last_job_id, last_error, last_error_at, skipped, created_at,"
        " updated_at from trunkline.schedules order by schedule",
        (),
        rows_of(ScheduleRow),
    )


def settings() -> Call[list[SettingRow]]:
    """Every setting, by name."""
    return Call(
        "select name, value, origin, kind, default_value, minimum, maximum, description,"
        " updated_at, updated_by from trunkline.settings order by name",
        (),
        rows_of(SettingRow),
    )


def tasks() -> Call[list[TaskRow]]:
    """Every task, by name."""
    return Call(
        "select task, queue, profile, lease, hard_limit, max_attempts, priority, backoff_base,"
        " backoff_factor, backoff_cap, backoff_jitter, lost_backoff, reclaim_on_worker_death,"
        " crash_limit, unique_until, dead_when_deferred, audit, registered_at, updated_at, alias_of"
        " from trunkline.tasks order by task",
        (),
        rows_of(TaskRow),
    )


def duties() -> Call[list[DutyRow]]:
    """Every duty, by name."""
    return Call(
        "select duty, every, description, started_at, ended_at, succeeded_at, rows, runs,"
        " failures, failures_in_a_row, last_error, late, enabled, function"
        " from trunkline.duties order by duty",
        (),
        rows_of(DutyRow),
    )


def _twice(value: Any) -> tuple[Any, Any]:
    return value, value

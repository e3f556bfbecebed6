"""The views an operator looks at, a row of each as a value with the view's own column names."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, LiteralString
from uuid import UUID

from trunkline.db.call import Call, rows_of, scalar
from trunkline.model import (
    DeadLetter,
    DutyStatus,
    QueueStatus,
    ScheduleStatus,
    SettingStatus,
    TaskStatus,
    WorkerStatus,
)

__all__ = [
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


def clock() -> Call[datetime]:
    """The engine's time, against which ages are told."""
    return Call("select trunkline.clock()", (), scalar)


def queues() -> Call[list[QueueStatus]]:
    """Every queue, by name."""
    return Call(
        "select queue, paused, paused_reason, paused_at, max_depth, ready, scheduled, blocked,"
        " running, dead, oldest_ready_at, oldest_ready_age, ageing, counted_up_to"
        " from trunkline.queues order by queue",
        (),
        rows_of(QueueStatus),
    )


def workers(*, everyone: bool) -> Call[list[WorkerStatus]]:
    """Workers that are there or were lost, those that stopped too if asked; newest last."""
    return Call(
        "select worker, state, alive, started_at, seen_at, pulse_interval, running, host, pid,"
        " version, queues, tasks, detail from trunkline.workers"
        " where %s::boolean or state in ('active', 'draining') or running > 0"
        " order by started_at, worker",
        (everyone,),
        rows_of(WorkerStatus),
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


def schedules() -> Call[list[ScheduleStatus]]:
    """Every schedule, by name."""
    return Call(
        "select schedule, cron, time_zone, task, payload, queue, priority, tenant, missed, paused,"
        " next_run_at, last_run_at, last_job_id, last_error, last_error_at, skipped, created_at,"
        " updated_at from trunkline.schedules order by schedule",
        (),
        rows_of(ScheduleStatus),
    )


def settings() -> Call[list[SettingStatus]]:
    """Every setting, by name."""
    return Call(
        "select name, value, origin, kind, default_value, minimum, maximum, description,"
        " updated_at, updated_by from trunkline.settings order by name",
        (),
        rows_of(SettingStatus),
    )


def tasks() -> Call[list[TaskStatus]]:
    """Every task, by name."""
    return Call(
        "select task, queue, profile, lease, hard_limit, max_attempts, priority, backoff_base,"
        " backoff_factor, backoff_cap, backoff_jitter, lost_backoff, reclaim_on_worker_death,"
        " crash_limit, unique_until, dead_when_deferred, audit, registered_at, updated_at, alias_of"
        " from trunkline.tasks order by task",
        (),
        rows_of(TaskStatus),
    )


def duties() -> Call[list[DutyStatus]]:
    """Every duty, by name."""
    return Call(
        "select duty, every, description, started_at, ended_at, succeeded_at, rows, runs,"
        " failures, failures_in_a_row, last_error, late, enabled, function"
        " from trunkline.duties order by duty",
        (),
        rows_of(DutyStatus),
    )


def _twice(value: Any) -> tuple[Any, Any]:
    return value, value

"""The views for operators. A row is a value with the column names of its view."""

from datetime import datetime

from trunkline.db.call import Call, rows_of, scalar
from trunkline.model import (
    DutyStatus,
    QueueStatus,
    ScheduleStatus,
    SettingStatus,
    TaskStatus,
    WorkerStatus,
    WorkerTarget,
)

__all__ = [
    "clock",
    "duties",
    "queues",
    "schedules",
    "settings",
    "tasks",
    "wanted_workers",
    "workers",
]


def clock() -> Call[datetime]:
    """Return the engine's time, from which ages are computed."""
    return Call("select trunkline.clock()", (), scalar)


def queues() -> Call[list[QueueStatus]]:
    """Return every queue, by name."""
    return Call(
        "select queue, paused, paused_reason, paused_at, max_depth, ready, scheduled, blocked,"
        " running, dead, oldest_ready_at, oldest_ready_age, ageing, counted_up_to"
        " from trunkline.queues order by queue",
        (),
        rows_of(QueueStatus),
    )


def workers(*, everyone: bool) -> Call[list[WorkerStatus]]:
    """Return workers that are active, draining or lost, and stopped ones if asked; newest last."""
    return Call(
        "select worker, state, alive, started_at, seen_at, pulse_interval, running, host, pid,"
        " version, queues, tasks, detail from trunkline.workers"
        " where %s::boolean or state in ('active', 'draining') or running > 0"
        " order by started_at, worker",
        (everyone,),
        rows_of(WorkerStatus),
    )


def wanted_workers() -> Call[list[WorkerTarget]]:
    """Return how many workers are wanted, by queue and set of tasks."""
    return Call(
        "select queue, tasks, wanted, workers, startable, running, low_since, counted_up_to"
        " from trunkline.wanted_workers order by queue, tasks nulls first",
        (),
        rows_of(WorkerTarget),
    )


def schedules() -> Call[list[ScheduleStatus]]:
    """Return every schedule, by name."""
    return Call(
        "select schedule, cron, time_zone, task, payload, queue, priority, tenant, missed, paused,"
        " next_run_at, last_run_at, last_job_id, last_error, last_error_at, skipped, created_at,"
        " updated_at from trunkline.schedules order by schedule",
        (),
        rows_of(ScheduleStatus),
    )


def settings() -> Call[list[SettingStatus]]:
    """Return every setting, by name."""
    return Call(
        "select name, value, origin, kind, default_value, minimum, maximum, description,"
        " updated_at, updated_by from trunkline.settings order by name",
        (),
        rows_of(SettingStatus),
    )


def tasks() -> Call[list[TaskStatus]]:
    """Return every task, by name."""
    return Call(
        "select task, queue, profile, lease, hard_limit, max_attempts, priority, backoff_base,"
        " backoff_factor, backoff_cap, backoff_jitter, lost_backoff, reclaim_on_worker_death,"
        " crash_limit, unique_until, dead_when_deferred, audit, registered_at, updated_at,"
        " alias_of, coalesce(limits, '{}'), cost, schedules"
        " from trunkline.tasks order by task",
        (),
        rows_of(TaskStatus),
    )


def duties() -> Call[list[DutyStatus]]:
    """Return every duty, by name."""
    return Call(
        "select duty, every, description, started_at, ended_at, succeeded_at, rows, runs,"
        " failures, failures_in_a_row, last_error, late, enabled, function"
        " from trunkline.duties order by duty",
        (),
        rows_of(DutyStatus),
    )

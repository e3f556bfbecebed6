"""Changes by operators: queues, schedules, settings, workers, duties."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from trunkline.db.call import Call, json_text, nothing, one, rows_of, scalar
from trunkline.model import DutyRun, ScheduleChange

__all__ = [
    "add_duty",
    "adopt_schedule",
    "age_queue",
    "drain_worker",
    "enable_duty",
    "limit_queue",
    "next_due",
    "pause_queue",
    "pause_schedule",
    "remove_duty",
    "remove_schedule",
    "resume_queue",
    "resume_schedule",
    "run_duties",
    "run_duty",
    "set_schedule",
    "set_setting",
]


def pause_queue(queue: str, reason: str | None, *, refuse_enqueue: bool) -> Call[None]:
    """Stop claims from a queue and, if asked, refuse new jobs."""
    return Call(
        "select trunkline.pause_queue(p_queue => %s, p_reason => %s,"
        " p_refuse_enqueue => %s::boolean)",
        (queue, reason, refuse_enqueue),
        nothing,
    )


def resume_queue(queue: str) -> Call[bool]:
    """Allow claims and new jobs again; return whether the queue was paused."""
    return Call("select trunkline.resume_queue(p_queue => %s)", (queue,), scalar)


def limit_queue(queue: str, max_depth: int | None) -> Call[None]:
    """Limit how many ready jobs a queue may hold; None removes the limit."""
    return Call(
        "select trunkline.limit_queue(p_queue => %s, p_max_depth => %s::integer)",
        (queue, max_depth),
        nothing,
    )


def age_queue(queue: str, *, ageing: bool) -> Call[None]:
    """Serve the lowest priority first in one of sixteen claims, or no longer."""
    return Call(
        "select trunkline.age_queue(p_queue => %s, p_ageing => %s::boolean)",
        (queue, ageing),
        nothing,
    )


def drain_worker(worker: str) -> Call[str]:
    """Ask a worker to finish its jobs and claim no more; return its state."""
    return Call("select trunkline.drain_worker(p_worker => %s)", (worker,), scalar)


def set_setting(name: str, value: str | None) -> Call[str]:
    """Change a setting, or restore its default with None; return its new value."""
    return Call("select trunkline.set_setting(p_name => %s, p_value => %s)", (name, value), scalar)


def set_schedule(
    schedule: str,
    cron: str,
    task: str,
    *,
    payload: Mapping[str, Any],
    time_zone: str,
    queue: str | None = None,
    priority: int | None = None,
    tenant: str | None = None,
    missed: str = "once",
    paused: bool | None = None,
) -> Call[ScheduleChange]:
    """Create a schedule, or replace it; with `paused=None` a pause stays as it is."""
    return Call(
        "select schedule, created, paused, next_run_at from trunkline.set_schedule("
        "p_schedule => %s, p_cron => %s, p_task => %s, p_payload => %s::text::jsonb,"
        " p_time_zone => %s, p_queue => %s, p_priority => %s::integer, p_tenant => %s,"
        " p_missed => %s, p_paused => %s::boolean)",
        (
            schedule,
            cron,
            task,
            json_text(payload),
            time_zone,
            queue,
            priority,
            tenant,
            missed,
            paused,
        ),
        one(ScheduleChange),
    )


def pause_schedule(schedule: str) -> Call[ScheduleChange]:
    """Enqueue nothing until the schedule is resumed."""
    return Call(
        "select schedule, created, paused, next_run_at"
        " from trunkline.pause_schedule(p_schedule => %s)",
        (schedule,),
        one(ScheduleChange),
    )


def resume_schedule(schedule: str) -> Call[ScheduleChange]:
    """Continue from now on; due times during the pause do not count as missed."""
    return Call(
        "select schedule, created, paused, next_run_at"
        " from trunkline.resume_schedule(p_schedule => %s)",
        (schedule,),
        one(ScheduleChange),
    )


def adopt_schedule(task: str, alias: str) -> Call[bool]:
    """Rename the schedule that code declared under an old name of the task; keep its due time."""
    return Call(
        "select trunkline.adopt_schedule(p_task => %s, p_alias => %s)", (task, alias), scalar
    )


def remove_schedule(schedule: str) -> Call[None]:
    """Remove a schedule; the jobs that it has enqueued stay."""
    return Call("select trunkline.remove_schedule(p_schedule => %s)", (schedule,), nothing)


def next_due(cron: str, time_zone: str, after: datetime | None, count: int) -> Call[list[datetime]]:
    """Return the next `count` due times of a cron expression."""

    def decode(rows: Sequence[tuple[Any, ...]]) -> list[datetime]:
        return [row[0] for row in rows]

    return Call(
        "select due from trunkline.next_due(p_cron => %s, p_time_zone => %s,"
        " p_after => %s::timestamptz, p_count => %s::integer) as due",
        (cron, time_zone, after, count),
        decode,
    )


def run_duties() -> Call[list[DutyRun]]:
    """Run every duty that is due."""
    return Call("select duty, ran, rows, error from trunkline.run_duties()", (), rows_of(DutyRun))


def run_duty(duty: str) -> Call[DutyRun]:
    """Run one duty now, due or not."""
    return Call(
        "select duty, ran, rows, error from trunkline.run_duty(p_duty => %s)",
        (duty,),
        one(DutyRun),
    )


def enable_duty(duty: str, *, enabled: bool) -> Call[None]:
    """Let workers run a duty, or let them skip it."""
    return Call(
        "select trunkline.enable_duty(p_duty => %s, p_enabled => %s)", (duty, enabled), nothing
    )


def add_duty(
    duty: str, function: str, every: timedelta, description: str | None = None
) -> Call[None]:
    """Add a duty that calls a function, or change one that was added."""
    return Call(
        "select trunkline.add_duty(p_duty => %s, p_function => %s, p_every => %s::interval,"
        " p_description => %s)",
        (duty, function, every, description),
        nothing,
    )


def remove_duty(duty: str) -> Call[None]:
    """Remove a duty that was added."""
    return Call("select trunkline.remove_duty(p_duty => %s)", (duty,), nothing)

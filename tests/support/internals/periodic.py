"""Duties and schedules: their due times and their state."""

from datetime import datetime
from typing import Any

import psycopg

__all__ = [
    "forget_runs",
    "hurry_duties",
    "make_duties_due",
    "make_schedules_due",
    "set_time_zone",
    "unguard_duties",
]

Superuser = psycopg.Connection[Any]

_UNGUARDED = """
create or replace function trunkline_internal.guard_duty(
  p_duty text, p_due_only boolean default false, p_limit integer default null,
  p_keep_rows boolean default false,
  out ran boolean, out done integer, out error text, out result jsonb
) language sql volatile as $$
  select true, c.done, null, c.result
  from trunkline_internal.duties as d
  cross join trunkline_internal.call_duty(d.function, p_limit, p_keep_rows) as c
  where d.duty = p_duty
$$
"""


def hurry_duties(superuser: Superuser) -> None:
    """Make promote and reclaim run twice a second."""
    superuser.execute(
        "update trunkline_internal.duties set every = '500 milliseconds'"
        " where duty in ('promote', 'reclaim')"
    )


def forget_runs(superuser: Superuser) -> None:
    """Delete the state of duties from earlier runs."""
    superuser.execute(
        "update trunkline_internal.duties set state = '{}', runs = 0, ended_at = null"
    )


def make_duties_due(superuser: Superuser) -> None:
    """Make all duties due, as if none had ever run."""
    superuser.execute("update trunkline_internal.duties set started_at = null")


def make_schedules_due(superuser: Superuser, at: datetime | None = None) -> None:
    """Make all schedules due at the given time, or now."""
    superuser.execute(
        "update trunkline_internal.schedules set next_run_at = coalesce(%s, clock_timestamp())",
        (at,),
    )


def set_time_zone(superuser: Superuser, schedule: str, zone: str) -> None:
    """Give a schedule a time zone that need not exist."""
    superuser.execute(
        "update trunkline_internal.schedules set time_zone = %s where schedule = %s",
        (zone, schedule),
    )


def unguard_duties(superuser: Superuser) -> None:
    """Allow any number of sessions to run the same duty at once."""
    superuser.execute(_UNGUARDED)

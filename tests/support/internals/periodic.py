"""Duties and schedules: when they run next."""

from datetime import datetime
from typing import Any

import psycopg

__all__ = ["hurry_duties", "make_duties_due", "make_schedules_due"]

Superuser = psycopg.Connection[Any]


def hurry_duties(superuser: Superuser) -> None:
    """Let promote and reclaim run twice a second."""
    superuser.execute(
        "update trunkline_internal.duties set every = '500 milliseconds'"
        " where duty in ('promote', 'reclaim')"
    )


def make_duties_due(superuser: Superuser) -> None:
    """Let all duties be due, as if none had ever run."""
    superuser.execute("update trunkline_internal.duties set started_at = null")


def make_schedules_due(superuser: Superuser, at: datetime | None = None) -> None:
    """Let all schedules be due at the given time, or now."""
    superuser.execute(
        "update trunkline_internal.schedules set next_run_at = coalesce(%s, clock_timestamp())",
        (at,),
    )

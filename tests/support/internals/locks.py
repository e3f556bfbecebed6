"""Locks that a transaction holds until it ends."""

from typing import Any
from uuid import UUID

import psycopg

from tests.support.internals.tables import table

__all__ = ["lock_jobs", "lock_table", "unlocked_running"]

Connection = psycopg.Connection[Any]


def lock_table(holder: Connection, name: str) -> None:
    """Lock a table against all other sessions."""
    holder.execute(f"lock table {table(name)} in access exclusive mode".encode())


def lock_jobs(holder: Connection, name: str, *jobs: UUID) -> None:
    """Lock the rows of these jobs, or of all jobs in the table."""
    holder.execute(
        f"select from {table(name)} where job_id = any(%(jobs)s) or %(all)s for update".encode(),
        {"jobs": list(jobs), "all": not jobs},
    )


def unlocked_running(observer: Connection) -> int:
    """Count the running jobs that no session has locked."""
    row = observer.execute(
        "select count(*) from (select from trunkline_internal.running for update skip locked) as f"
    ).fetchone()
    assert row is not None
    jobs: int = row[0]
    return jobs

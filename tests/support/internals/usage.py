"""Costs, estimates, grants, quotas and the usage ledger."""

from typing import Any, NamedTuple
from uuid import UUID

import psycopg

__all__ = [
    "Cost",
    "Entry",
    "costs_of_waiting",
    "entries",
    "estimates",
    "fill_quota_hours",
    "learn",
    "quota_hours",
    "quota_rows_read",
    "tokens_of_grant",
    "unsettled_grants",
]

Superuser = psycopg.Connection[Any]


class Cost(NamedTuple):
    """The cost that a claim of a job charges."""

    requests: int
    tokens: int
    units: int


class Entry(NamedTuple):
    """One line of the usage ledger."""

    job: UUID | None
    grant: UUID | None
    tokens: int
    units: int
    money: Any


def costs_of_waiting(
    superuser: Superuser, *jobs: UUID, task: str | None = None
) -> list[Cost | None]:
    """Return the costs of waiting jobs in their order; None for a job without limits."""
    rows = superuser.execute(
        "select cost_requests, cost_tokens, cost_units from trunkline_internal.waiting"
        " where (job_id = any(%(jobs)s) or %(all)s) and task = coalesce(%(task)s, task)"
        " order by sequence",
        {"jobs": list(jobs), "all": not jobs, "task": task},
    )
    return [None if row[0] is None else Cost(*row) for row in rows]


def entries(superuser: Superuser) -> list[Entry]:
    """Return the lines of the usage ledger, sorted by time."""
    rows = superuser.execute(
        "select job_id, grant_id, tokens, units, cost from trunkline_internal.usage order by at"
    )
    return [Entry(*row) for row in rows]


def estimates(superuser: Superuser) -> list[tuple[int, int]]:
    """Return the learned estimates of tasks, as (tokens, units)."""
    return superuser.execute(
        "select tokens, units from trunkline_internal.estimates order by tokens, units"
    ).fetchall()


def learn(superuser: Superuser, task: str, bucket: str, *, tokens: int, units: int = 0) -> None:
    """Set the estimate for jobs of a task in a bucket."""
    superuser.execute(
        "insert into trunkline_internal.estimates (task, bucket, tokens, units, updated_at)"
        " values (%s, trunkline_internal.bucket_of(%s), %s, %s, now())",
        (task, bucket, tokens, units),
    )


def tokens_of_grant(superuser: Superuser, grant: UUID) -> int:
    """Return the tokens that were charged for a grant."""
    row = superuser.execute(
        "select tokens from trunkline_internal.grants where grant_id = %s", (grant,)
    ).fetchone()
    assert row is not None
    tokens: int = row[0]
    return tokens


def unsettled_grants(superuser: Superuser) -> int:
    """Count the grants that were not settled."""
    row = superuser.execute(
        "select count(*) from trunkline_internal.grants where settled_at is null"
    ).fetchone()
    assert row is not None
    grants: int = row[0]
    return grants


def quota_hours(superuser: Superuser) -> list[tuple[int, int]]:
    """Return the rows of quotas as (hour, amount)."""
    return superuser.execute(
        "select hour, amount from trunkline_internal.quota_hours order by hour, amount"
    ).fetchall()


def fill_quota_hours(superuser: Superuser, buckets: int, rows_each: int) -> None:
    """Insert rows of one unit each for many idle buckets, over the last 300 hours."""
    superuser.execute(
        "insert into trunkline_internal.quota_hours (bucket, hour, amount)"
        " select b, floor(extract(epoch from now()) / 3600) - h %% 300, 1"
        " from generate_series(1, %s) as b, generate_series(1, %s) as h",
        (buckets, rows_each),
    )
    superuser.execute("analyze trunkline_internal.quota_hours")


def quota_rows_read(superuser: Superuser) -> int:
    """Count the rows of quotas that any session has read and reported to the statistics."""
    row = superuser.execute(
        "select seq_tup_read + idx_tup_fetch from pg_stat_user_tables where relname = 'quota_hours'"
    ).fetchone()
    assert row is not None
    rows: int = row[0]
    return rows

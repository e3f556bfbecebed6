"""Quotas and budgets, and the books of what was spent."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Literal, NamedTuple
from uuid import UUID

from trunkline.db.call import Call, rows_of

__all__ = [
    "By",
    "JobUsageRow",
    "QuotaRow",
    "UsageRow",
    "quotas",
    "usage",
    "usage_of_job",
]

By = Literal["day", "limit", "task", "tenant"]


class QuotaRow(NamedTuple):
    """A quota, or one key of it: what is spent, and when it will be."""

    name: str
    limit: str
    unit: str
    quota: int
    allowed: int
    low_allowed: int
    low_below: int
    spent: int
    reserved: int
    remaining: int
    share: Decimal | None
    window: timedelta | None
    period: str | None
    since: datetime
    resets_at: datetime | None
    rate_per_hour: Decimal
    spent_at: datetime | None
    paused_low: bool
    exhausted: bool
    refuses: bool
    refused_until: datetime | None


class UsageRow(NamedTuple):
    """What was spent of one limit, by day, task or tenant; None where that was not asked for."""

    day: date | None
    task: str | None
    tenant: str | None
    limit: str
    calls: int
    requests: int
    tokens: int
    units: int
    cost: Decimal


class JobUsageRow(NamedTuple):
    """What an attempt of a job took of one limit, under its name with the keys filled in."""

    limit: str
    name: str
    attempt: int
    calls: int
    requests: int
    tokens: int
    units: int
    cost: Decimal


def quotas(name: str | None = None) -> Call[list[QuotaRow]]:
    """Quotas by limit, of each first the keys nearest to their end; one limit or key if named."""
    return Call(
        'select name, "limit", unit, quota, allowed, low_allowed, low_below, spent, reserved,'
        ' remaining, share, "window", period, since, resets_at, rate_per_hour, spent_at,'
        " paused_low, exhausted, refuses, refused_until from trunkline.quotas"
        ' where %s::text is null or name = %s or "limit" = %s'
        ' order by "limit", share desc nulls first, name',
        (name, name, name),
        rows_of(QuotaRow),
    )


def usage(by: By, since: datetime | None) -> Call[list[UsageRow]]:
    """What was settled since a day; not summed over limits: a call may take from several."""
    return Call(
        "select case %s when 'day' then day end, case %s when 'task' then task end,"
        " case %s when 'tenant' then tenant end, \"limit\", sum(calls)::bigint,"
        " sum(requests)::bigint, sum(tokens)::bigint, sum(units)::bigint, sum(cost)"
        " from trunkline.usage"
        " where day >= coalesce((%s::timestamptz at time zone 'UTC')::date, '-infinity')"
        " group by 1, 2, 3, 4 order by 1, 2, 3, 4",
        (by, by, by, since),
        rows_of(UsageRow),
    )


def usage_of_job(job: UUID) -> Call[list[JobUsageRow]]:
    """What a job really used, by attempt and limit."""
    return Call(
        'select "limit", name, attempt, calls, requests, tokens, units, cost'
        " from trunkline.usage_of_job(p_job => %s::uuid)",
        (job,),
        rows_of(JobUsageRow),
    )

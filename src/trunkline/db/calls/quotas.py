"""Quotas and budgets, and the usage ledger."""

from datetime import datetime
from uuid import UUID

from trunkline.db.call import Call, rows_of
from trunkline.model import JobUsage, QuotaStatus, UsageBy, UsageSum

__all__ = [
    "quotas",
    "usage",
    "usage_of_job",
]


def quotas(name: str | None = None) -> Call[list[QuotaStatus]]:
    """Return quotas by limit, the fullest keys first; one limit or bucket if named."""
    return Call(
        'select name, "limit", unit, quota, allowed, low_allowed, low_below, spent, reserved,'
        ' remaining, share, "window", period, since, resets_at, rate_per_hour, spent_at,'
        " paused_low, exhausted, refuses, refused_until from trunkline.quotas"
        ' where %s::text is null or name = %s or "limit" = %s'
        ' order by "limit", share desc nulls first, name',
        (name, name, name),
        rows_of(QuotaStatus),
    )


def usage(by: UsageBy, since: datetime | None) -> Call[list[UsageSum]]:
    """Return what was settled since a day, per limit, because a call may take from several."""
    return Call(
        "select case %s when 'day' then day end, case %s when 'task' then task end,"
        " case %s when 'tenant' then tenant end, \"limit\", sum(calls)::bigint,"
        " sum(requests)::bigint, sum(tokens)::bigint, sum(units)::bigint, sum(cost)"
        " from trunkline.usage"
        " where day >= coalesce((%s::timestamptz at time zone 'UTC')::date, '-infinity')"
        " group by 1, 2, 3, 4 order by 1, 2, 3, 4",
        (by, by, by, since),
        rows_of(UsageSum),
    )


def usage_of_job(job: UUID) -> Call[list[JobUsage]]:
    """Return what a job used, by attempt and limit."""
    return Call(
        'select "limit", name, attempt, calls, requests, tokens, units, cost'
        " from trunkline.usage_of_job(p_job => %s::uuid)",
        (job,),
        rows_of(JobUsage),
    )

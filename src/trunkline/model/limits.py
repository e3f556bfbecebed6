"""What the engine shows about limits, buckets, breakers, quotas and usage."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Literal, NamedTuple
from uuid import UUID

__all__ = [
    "BreakerStatus",
    "BucketStatus",
    "JobUsage",
    "LimitStatus",
    "QuotaStatus",
    "UsageBy",
    "UsageSum",
]

UsageBy = Literal["day", "limit", "task", "tenant"]


class LimitStatus(NamedTuple):
    """A limit with what is given out of it, over all of its keys."""

    name: str
    status: str
    reason: str | None
    requests_per_minute: int | None
    requests_per_hour: int | None
    tokens_per_minute: int | None
    tokens_per_hour: int | None
    concurrency: int | None
    in_use: int
    requests_of_minute: int
    requests_of_hour: int
    tokens_of_minute: int
    tokens_of_hour: int
    waiting: int
    buckets: int
    # Share in use of the fullest key, from 0 to 1; None if nothing bounds it.
    fullness: Decimal | None
    paused_until: datetime | None
    refused: int
    refused_at: datetime | None
    quota: int | None
    quota_unit: str | None
    quota_window: timedelta | None
    quota_period: str | None
    quota_buffer: Decimal | None
    quota_low_share: Decimal | None
    quota_low_below: int | None
    quota_refuses: bool
    spent: int
    breaker_failures: int | None
    breaker_share: Decimal | None
    breaker_window: timedelta | None
    breaker_probe_after: timedelta | None
    backpressure_threshold: Decimal | None
    backpressure_delay: timedelta | None
    depth_limit: int | None
    depth_refuses: bool
    weight: int | None
    share_cap: int | None
    share_group: str | None
    updated_at: datetime
    updated_by: str
    # Attempts of the last seven days that may have called late, and their tasks.
    late: int
    late_tasks: list[str]
    # Waiting jobs that cost more than the limit can ever allow.
    set_aside: int
    # Jobs are counted up to this bound: a number that reaches it means that many or more.
    counted_up_to: int


class BucketStatus(NamedTuple):
    """One limit with its keys filled in."""

    name: str
    limit: str
    in_use: int
    requests_of_minute: int
    requests_of_hour: int
    tokens_of_minute: int
    tokens_of_hour: int
    waiting: int
    spent: int | None
    paused_until: datetime | None
    pause_reason: str | None
    refused: int
    refused_at: datetime | None
    breaker: str | None
    set_aside: int
    counted_up_to: int


class BreakerStatus(NamedTuple):
    """The breaker of one limit with its keys filled in, and what it counts now."""

    name: str
    limit: str
    state: str
    failures: int
    attempts: int
    share: float | None
    breaker_failures: int
    breaker_share: float
    breaker_window: timedelta
    breaker_probe_after: timedelta
    opened_at: datetime | None
    probe_at: datetime | None
    probe_job: UUID | None
    waiting: int
    changed_at: datetime | None
    changed_by: str | None
    reason: str | None
    # Jobs are counted up to this bound: a number that reaches it means that many or more.
    counted_up_to: int


class QuotaStatus(NamedTuple):
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


class UsageSum(NamedTuple):
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


class JobUsage(NamedTuple):
    """What an attempt of a job took of one limit, under its name with the keys filled in."""

    limit: str
    name: str
    attempt: int
    calls: int
    requests: int
    tokens: int
    units: int
    cost: Decimal

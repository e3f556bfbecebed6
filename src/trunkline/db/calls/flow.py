"""Limits: what providers allow, and how much of it is in use."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from trunkline.db.call import Call, json_text, one, rows_of, scalar
from trunkline.model import BucketStatus, LimitStatus

__all__ = [
    "GrantAnswer",
    "acquire",
    "buckets",
    "limits",
    "observe_limit",
    "paused",
    "set_limit",
    "settle",
    "settle_job",
]


class GrantAnswer(NamedTuple):
    """The answer of acquire: a grant, or the reason why there is none and until when."""

    granted: bool
    grant_id: UUID | None
    reason: str | None
    free_at: datetime | None
    # The same in seconds from now, so that nobody compares the server's clock with a local one.
    free_in: float | None
    expires_at: datetime | None


def limits() -> Call[list[LimitStatus]]:
    """Return every limit, by name."""
    return Call(
        "select name, status, reason, requests_per_minute, requests_per_hour, tokens_per_minute,"
        " tokens_per_hour, concurrency, in_use, requests_of_minute, requests_of_hour,"
        " tokens_of_minute, tokens_of_hour, waiting, buckets, fullness, paused_until, refused,"
        " refused_at, quota, quota_unit, quota_window, quota_period, quota_buffer,"
        " quota_low_share, quota_low_below, quota_refuses, spent, breaker_failures,"
        " breaker_share, breaker_window, breaker_probe_after, backpressure_threshold,"
        " backpressure_delay, depth_limit, depth_refuses, weight, share_cap, share_group,"
        " updated_at, updated_by, late, late_tasks, set_aside, counted_up_to"
        " from trunkline.limits order by name",
        (),
        rows_of(LimitStatus),
    )


def buckets(limit: str) -> Call[list[BucketStatus]]:
    """Return the buckets of a limit that were used lately, those with most jobs waiting first."""
    return Call(
        'select name, "limit", in_use, requests_of_minute, requests_of_hour, tokens_of_minute,'
        " tokens_of_hour, waiting, spent, paused_until, pause_reason, refused, refused_at, breaker,"
        " set_aside, counted_up_to"
        ' from trunkline.buckets where "limit" = %s'
        " order by waiting desc, name limit 100",
        (limit,),
        rows_of(BucketStatus),
    )


def paused(limit: str) -> Call[list[str]]:
    """Return the names of the buckets of a limit that a provider has paused."""
    return Call(
        'select name from trunkline.buckets where "limit" = %s and paused_until is not null'
        " order by name",
        (limit,),
        lambda rows: [row[0] for row in rows],
    )


def set_limit(
    limit: str,
    parts: Mapping[str, Any],
    status: str | None = None,
    reason: str | None = None,
) -> Call[bool]:
    """Create a limit or change the given parts of it; return whether it is new."""
    return Call(
        "select trunkline.set_limit(p_limit => %s, p_parts => %s::text::jsonb, p_status => %s,"
        " p_reason => %s)",
        (limit, json_text(dict(parts)), status, reason),
        scalar,
    )


def acquire(
    limit: str,
    cost: Mapping[str, int],
    keys: Mapping[str, Any],
    *,
    job: UUID | None,
    attempt: int | None,
    ttl: float,
    tenant: str | None,
) -> Call[GrantAnswer]:
    """Acquire a grant for one call if there is room; it ends with the attempt, if one is given."""
    return Call(
        "select granted, grant_id, reason, free_at,"
        # The case keeps an unknown time null; greatest alone would return zero.
        " case when free_at is not null"
        " then greatest(extract(epoch from free_at - trunkline.clock())::float8, 0) end, expires_at"
        " from trunkline.acquire(p_limit => %s, p_cost => %s::text::jsonb,"
        " p_keys => %s::text::jsonb, p_job => %s::uuid, p_attempt => %s::integer,"
        " p_ttl => %s::interval, p_tenant => %s)",
        (
            limit,
            json_text(dict(cost)),
            json_text(dict(keys)),
            job,
            attempt,
            timedelta(seconds=ttl),
            tenant,
        ),
        one(GrantAnswer),
    )


def settle(grant: UUID, actual: Mapping[str, Any] | None) -> Call[str]:
    """Report the actual cost of a grant, and free its slot; return settled, already or unknown."""
    return Call(
        "select trunkline.settle(p_grant => %s::uuid, p_actual => %s::text::jsonb)",
        (grant, None if actual is None else json_text(dict(actual))),
        scalar,
    )


def settle_job(job: UUID, attempt: int, actual: Mapping[str, Any]) -> Call[str]:
    """Report the actual cost of an attempt that its claim has charged; return as `settle` does."""
    return Call(
        "select trunkline.settle_job(p_job => %s::uuid, p_attempt => %s::integer,"
        " p_actual => %s::text::jsonb)",
        (job, attempt, json_text(dict(actual))),
        scalar,
    )


def observe_limit(
    limit: str,
    observed: Mapping[str, Any],
    keys: Mapping[str, Any],
    *,
    job: UUID | None = None,
    attempt: int | None = None,
) -> Call[datetime | None]:
    """Report a provider's rate-limit response; return until when the bucket is paused, if it is.

    A session that acts for one tenant must pass the job of the call to name a shared limit.
    """
    return Call(
        "select trunkline.observe_limit(p_limit => %s, p_observed => %s::text::jsonb,"
        " p_keys => %s::text::jsonb, p_job => %s::uuid, p_attempt => %s::integer)",
        (limit, json_text(dict(observed)), json_text(dict(keys)), job, attempt),
        scalar,
    )

"""Breakers: limits that are closed for a while after repeated failures."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from trunkline.db.call import Call, json_text, rows_of, scalar
from trunkline.model import BreakerStatus

__all__ = [
    "breakers",
    "reset_breaker",
    "set_breaker",
    "trip_breaker",
]


def breakers() -> Call[list[BreakerStatus]]:
    """Return every breaker, those that are not closed first."""
    return Call(
        'select name, "limit", state, failures, attempts, share::float8, breaker_failures,'
        " breaker_share::float8, breaker_window, breaker_probe_after, opened_at, probe_at,"
        " probe_job, waiting, changed_at, changed_by, reason, counted_up_to from trunkline.breakers"
        " order by state = 'closed', name",
        (),
        rows_of(BreakerStatus),
    )


def set_breaker(limit: str, parts: Mapping[str, int | float | str | None]) -> Call[bool]:
    """Give a limit a breaker or change parts of it; return whether the limit is new."""
    return Call(
        "select trunkline.set_limit(p_limit => %s, p_parts => %s::text::jsonb)",
        (limit, json_text(dict(parts))),
        scalar,
    )


def reset_breaker(name: str) -> Call[int]:
    """Close a breaker, or those of all keys of a limit; return how many were not closed."""
    return Call("select trunkline.reset_breaker(p_name => %s)", (name,), scalar)


def trip_breaker(
    name: str, reason: str | None = None, length: timedelta | None = None
) -> Call[datetime]:
    """Open a breaker by hand; return when its probe is due."""
    return Call(
        "select trunkline.trip_breaker(p_name => %s, p_reason => %s, p_for => %s)",
        (name, reason, length),
        scalar,
    )

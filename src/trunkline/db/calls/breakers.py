"""Breakers: limits that stop for a while when what is behind them fails."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from trunkline.db.call import Call, json_text, rows_of, scalar

__all__ = ["BreakerRow", "breakers", "has_breaker", "reset_breaker", "set_breaker", "trip_breaker"]


class BreakerRow(NamedTuple):
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


def breakers() -> Call[list[BreakerRow]]:
    """Every breaker, those that hold something back first."""
    return Call(
        'select name, "limit", state, failures, attempts, share::float8, breaker_failures,'
        " breaker_share::float8, breaker_window, breaker_probe_after, opened_at, probe_at,"
        " probe_job, waiting, changed_at, changed_by, reason, counted_up_to from trunkline.breakers"
        " order by state = 'closed', name",
        (),
        rows_of(BreakerRow),
    )


def has_breaker(limit: str) -> Call[bool]:
    """Whether there is a limit of this name, and with a breaker."""
    return Call(
        "select exists (select from trunkline.limits where name = %s"
        " and breaker_failures is not null)",
        (limit,),
        scalar,
    )


def set_breaker(limit: str, parts: Mapping[str, int | float | str | None]) -> Call[bool]:
    """Give a limit a breaker or change the given parts of it; answers whether the limit is new."""
    return Call(
        "select trunkline.set_limit(p_limit => %s, p_parts => %s::text::jsonb)",
        (limit, json_text(dict(parts))),
        scalar,
    )


def reset_breaker(name: str) -> Call[int]:
    """Close a breaker, or those of all keys of a limit; answers how many were not closed."""
    return Call("select trunkline.reset_breaker(p_name => %s)", (name,), scalar)


def trip_breaker(
    name: str, reason: str | None = None, length: timedelta | None = None
) -> Call[datetime]:
    """Open a breaker by hand; answers when its probe is due."""
    return Call(
        "select trunkline.trip_breaker(p_name => %s, p_reason => %s, p_for => %s)",
        (name, reason, length),
        scalar,
    )

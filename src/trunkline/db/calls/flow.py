"""Limits: what providers allow, and what of it is given out."""

from collections.abc import Mapping
from typing import NamedTuple

from trunkline.db.call import Call, json_text, rows_of, scalar

__all__ = ["GateRow", "LimitRow", "gates", "limits", "set_limit"]


class LimitRow(NamedTuple):
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


class GateRow(NamedTuple):
    """One limit with its keys filled in."""

    name: str
    limit: str
    in_use: int
    requests_of_minute: int
    requests_of_hour: int
    tokens_of_minute: int
    tokens_of_hour: int
    waiting: int


def limits() -> Call[list[LimitRow]]:
    """Every limit, by name."""
    return Call(
        "select name, status, reason, requests_per_minute, requests_per_hour, tokens_per_minute,"
        " tokens_per_hour, concurrency, in_use, requests_of_minute, requests_of_hour,"
        " tokens_of_minute, tokens_of_hour, waiting from trunkline.limits order by name",
        (),
        rows_of(LimitRow),
    )


def gates(limit: str) -> Call[list[GateRow]]:
    """The filled-in names of a limit that were used lately, those with most waiting first."""
    return Call(
        'select name, "limit", in_use, requests_of_minute, requests_of_hour, tokens_of_minute,'
        ' tokens_of_hour, waiting from trunkline.gates where "limit" = %s'
        " order by waiting desc, name limit 100",
        (limit,),
        rows_of(GateRow),
    )


def set_limit(
    limit: str,
    parts: Mapping[str, int | None],
    status: str | None = None,
    reason: str | None = None,
) -> Call[bool]:
    """Make a limit or change the given parts of it; answers whether it is new."""
    return Call(
        "select trunkline.set_limit(p_limit => %s, p_parts => %s::text::jsonb, p_status => %s,"
        " p_reason => %s)",
        (limit, json_text(dict(parts)), status, reason),
        scalar,
    )

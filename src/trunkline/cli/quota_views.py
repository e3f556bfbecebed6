"""How quotas and the books look; imported when a command runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from rich.console import Console, Group, RenderableType
from rich.text import Text

from trunkline.cli.gauges import bar, gauge, percent, quantity
from trunkline.cli.output import age, amount, clean, moment, relative
from trunkline.cli.tables import Column, facts, table
from trunkline.model import QuotaStatus

__all__ = ["books", "listed", "money", "told"]

# Of a quota with many keys, those that are nearest to their end.
_KEYS: Final = 50


def listed(rows: Sequence[QuotaStatus], now: datetime, out: Console) -> RenderableType:
    """A table of quotas; of each limit the keys that are nearest to their end."""
    seen: dict[str, int] = {}
    kept = []
    for row in rows:
        seen[row.limit] = seen.get(row.limit, 0) + 1
        if seen[row.limit] <= _KEYS:
            kept.append(row)
    made = table(_columns(now, out), kept, out.width)
    if len(kept) == len(rows):
        return made
    return Group(made, Text(f"and {len(rows) - len(kept):,} more keys: --json has them all"))


def _columns(now: datetime, out: Console) -> list[Column[Any]]:
    def spent(row: QuotaStatus) -> str:
        parts = (quantity(number, row.unit, row.quota) for number in (row.spent, row.quota))
        return "/".join(parts) + ("" if row.unit == "bytes" else f" {row.unit}")

    def held(row: QuotaStatus) -> str:
        number = row.reserved
        return quantity(number, row.unit, row.quota) if number else ""

    def style(row: QuotaStatus) -> str:
        return "red" if row.exhausted else "yellow" if row.paused_low else ""

    def gone(row: QuotaStatus) -> str:
        return "" if row.exhausted else relative(row.spent_at, now)

    return [
        Column("QUOTA", lambda row: row.name, elastic=True, least=20),
        *gauge("", _fill, out, rank=1),
        Column("USED", lambda row: percent(row.share), style, right=True),
        Column("SPENT", spent, right=True, rank=2),
        Column("RESERVED", held, right=True, rank=6),
        Column("PER", _length, rank=4),
        Column("PACE", lambda row: _pace(row, short=True), right=True, rank=7),
        Column("GONE", gone, "yellow", rank=3),
        Column("", lambda row: _state(row, now), style, rank=1, elastic=True),
    ]


def _fill(row: QuotaStatus) -> float | None:
    """How full it is for whoever may still take from it."""
    return row.spent / row.allowed if row.allowed else None


def _length(row: QuotaStatus) -> str:
    return row.period or age(row.window)


def _pace(row: QuotaStatus, *, short: bool) -> str:
    if not row.rate_per_hour:
        return ""
    number = round(row.rate_per_hour)
    text = quantity(number, row.unit, row.quota) if number else f"{row.rate_per_hour:.2f}"
    if short:
        return f"{text}/h"
    return f"{text} an hour" if row.unit == "bytes" else f"{text} {row.unit} an hour"


def _state(row: QuotaStatus, now: datetime) -> str:
    if row.exhausted:
        more = f", more {relative(row.refused_until, now)}" if row.refused_until else ""
        return f"{'refused' if row.refuses else 'waits'}{more}"
    return "low priorities stop" if row.paused_low else ""


def told(row: QuotaStatus, now: datetime, out: Console) -> RenderableType:
    """All that is known of one quota, in words."""
    unit = "" if row.unit == "bytes" else f" {clean(row.unit)}"

    def said(number: int) -> str:
        return quantity(number, row.unit, row.quota) + unit

    fill = _fill(row)
    gauge = None
    if out.is_terminal and fill is not None:
        gauge = bar(fill, 40, plain=out.options.ascii_only)
    length = f"a {row.period}" if row.period else f"in any {age(row.window)}"
    given = "" if row.allowed == row.quota else f", {said(row.allowed)} of which are given out"
    if row.exhausted:
        more = f"; more {moment(row.refused_until, now)}" if row.refused_until else ""
        forecast = f"spent{more}"
    elif row.spent_at is not None:
        forecast = f"spent {moment(row.spent_at, now)}"
    elif row.rate_per_hour:
        forecast = f"lasts for the {row.period or 'next ' + age(row.window)}"
    else:
        forecast = "nothing was taken in the last day"
    low = f"from {said(row.low_allowed)} on priorities below {row.low_below} stop"
    return facts(
        [
            ("quota", clean(row.name)),
            ("limit", None if row.limit == row.name else clean(row.limit)),
            ("amount", f"{said(row.quota)} {length}{given}"),
            ("", gauge),
            ("spent", f"{said(row.spent)} ({percent(row.share) or 'all'})"),
            ("reserved", f"{said(row.reserved)} of that by what runs now" if row.reserved else ""),
            ("left", said(row.remaining)),
            ("low", low + (", as they do now" if row.paused_low else "")),
            ("spent out", f"new jobs {'are refused' if row.refuses else 'wait'}"),
            ("since", moment(row.since, now)),
            ("begins anew", moment(row.resets_at, now)),
            ("pace", _pace(row, short=False)),
            ("forecast", forecast),
        ]
    )


def money(cost: Any) -> str:
    """An amount of money, whatever its currency; small ones in more digits."""
    return f"{cost:,.2f}" if cost >= 1 or not cost else f"{cost:,.4f}"


def books(by: str) -> list[Column[Any]]:
    """Lines of the books, told apart by day, limit, task or tenant."""

    def number(name: str, rank: int) -> Column[Any]:
        return Column(
            name.upper(), lambda row: amount(getattr(row, name) or None), right=True, rank=rank
        )

    first: Column[Any] = Column(by.upper(), lambda row: getattr(row, by) or "(none)", elastic=True)
    return [
        *([] if by == "limit" else [first]),
        Column("LIMIT", lambda row: row.limit, elastic=True),
        number("calls", 1),
        number("requests", 4),
        number("tokens", 2),
        number("units", 3),
        Column("COST", lambda row: money(row.cost) if row.cost else "", right=True, rank=1),
    ]

"""How quotas and the usage ledger look."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from rich.console import Console, Group, RenderableType
from rich.text import Text

from trunkline.cli.gauges import bar, gauge, percent, quantity
from trunkline.cli.output import age, amount, clean, count, moment, relative
from trunkline.cli.tables import Column, facts, table
from trunkline.model import QuotaStatus

__all__ = ["facts_of", "money", "quota_table", "usage_columns"]

# Keys that are shown of one limit, the fullest first.
_KEYS: Final = 50
# The length of most notes about a quota, such as "refused, more in 11d".
_NOTE: Final = 20


def quota_table(rows: Sequence[QuotaStatus], now: datetime, out: Console) -> RenderableType:
    """Return a table of quotas; of a limit with many keys, the fullest ones."""
    counts: dict[str, int] = {}
    kept = []
    for row in rows:
        counts[row.limit] = counts.get(row.limit, 0) + 1
        if counts[row.limit] <= _KEYS:
            kept.append(row)
    shown = table(_columns(now, out), kept, out.width)
    if len(kept) == len(rows):
        return shown
    rest = count(len(rows) - len(kept), "more key")
    return Group(shown, Text(f"{rest}; --json prints all of them"))


def _columns(now: datetime, out: Console) -> list[Column[Any]]:
    def spent(row: QuotaStatus) -> str:
        parts = (quantity(number, row.unit, row.quota) for number in (row.spent, row.quota))
        return "/".join(parts) + ("" if row.unit == "bytes" else f" {row.unit}")

    def reserved(row: QuotaStatus) -> str:
        number = row.reserved
        return quantity(number, row.unit, row.quota) if number else ""

    def style(row: QuotaStatus) -> str:
        return "red" if row.exhausted else "yellow" if row.paused_low else ""

    def spent_at(row: QuotaStatus) -> str:
        return "" if row.exhausted else relative(row.spent_at, now)

    return [
        Column("QUOTA", lambda row: row.name, elastic=True, least=20),
        *gauge("", _fill, out, rank=1),
        Column("USED", lambda row: percent(row.share), style, right=True),
        Column("SPENT", spent, right=True, rank=2),
        Column("RESERVED", reserved, right=True, rank=6),
        Column("PER", _length, rank=4),
        Column("PACE", lambda row: _pace(row, short=True), right=True, rank=7),
        Column("GONE", spent_at, "yellow", rank=3),
        Column("", lambda row: _state(row, now), style, rank=1, elastic=True, least=_NOTE),
    ]


def _fill(row: QuotaStatus) -> float | None:
    """Return the share of what jobs may take."""
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
    return "low priorities wait" if row.paused_low else ""


def facts_of(row: QuotaStatus, now: datetime, out: Console) -> RenderableType:
    """Return all facts about one quota in words."""
    unit = "" if row.unit == "bytes" else f" {clean(row.unit)}"

    def amount_of(number: int) -> str:
        return quantity(number, row.unit, row.quota) + unit

    fill = _fill(row)
    fill_bar = None
    if out.is_terminal and fill is not None:
        fill_bar = bar(fill, 40, plain=out.options.ascii_only)
    length = f"a {row.period}" if row.period else f"in any {age(row.window)}"
    usable = (
        "" if row.allowed == row.quota else f", of which jobs may take {amount_of(row.allowed)}"
    )
    if row.exhausted:
        more = f"; more {moment(row.refused_until, now)}" if row.refused_until else ""
        forecast = f"spent{more}"
    elif row.spent_at is not None:
        forecast = f"spent {moment(row.spent_at, now)}"
    elif row.rate_per_hour:
        forecast = f"lasts for the {row.period or 'next ' + age(row.window)}"
    else:
        forecast = "no usage in the last day"
    low = f"from {amount_of(row.low_allowed)} on, priorities below {row.low_below} wait"
    return facts(
        [
            ("quota", clean(row.name)),
            ("limit", None if row.limit == row.name else clean(row.limit)),
            ("amount", f"{amount_of(row.quota)} {length}{usable}"),
            ("", fill_bar),
            ("spent", f"{amount_of(row.spent)} ({percent(row.share) or 'all'})"),
            (
                "reserved",
                f"{amount_of(row.reserved)} of that, by running jobs" if row.reserved else "",
            ),
            ("left", amount_of(row.remaining)),
            ("low", low + (", as now" if row.paused_low else "")),
            ("when spent", f"new jobs {'are refused' if row.refuses else 'wait'}"),
            ("since", moment(row.since, now)),
            ("resets", moment(row.resets_at, now)),
            ("pace", _pace(row, short=False)),
            ("forecast", forecast),
        ]
    )


def money(cost: Any) -> str:
    """Format an amount of money without a currency; small amounts have more digits."""
    return f"{cost:,.2f}" if cost >= 1 or not cost else f"{cost:,.4f}"


def usage_columns(by: str) -> list[Column[Any]]:
    """Return the columns of the usage ledger, summed by day, limit, task or tenant."""

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

"""``trunkline quotas``: how much of a limit there is for a month or a day, and what was used."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final, cast

import click

from trunkline.cli import options
from trunkline.cli.actions import change
from trunkline.cli.connection import opened
from trunkline.cli.listing import list_view
from trunkline.cli.output import clean, print_json
from trunkline.cli.quota_views import facts_of, money, quota_table, usage_columns
from trunkline.cli.tables import console, put
from trunkline.cli.tables import show as show_table
from trunkline.errors import UnknownLimit
from trunkline.model import UsageBy
from trunkline.operate import SyncOperator

__all__ = ["quotas"]

_EMPTY = "No quotas yet. Set one with: trunkline quotas set NAME --amount 20GiB"

_UNITS: Final = {
    "": 1,
    "k": 1000,
    "m": 1000**2,
    "g": 1000**3,
    "t": 1000**4,
    "ki": 1024,
    "mi": 1024**2,
    "gi": 1024**3,
    "ti": 1024**4,
}
_AMOUNT: Final = re.compile(r"(\d[\d_,]*(?:\.\d+)?)\s*([kmgt]i?)?(b)?", re.IGNORECASE)
_MOST: Final = 10**15


def _amount(_ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    """Return a number and whether it is in bytes; `none` is a quota of None."""
    if value is None:
        return None
    if value == "none":
        return None, False
    match = _AMOUNT.fullmatch(value.strip())
    if match is not None:
        number = float(re.sub("[_,]", "", match[1])) * _UNITS[(match[2] or "").lower()]
        if number == int(number) <= _MOST:
            return int(number), match[3] is not None
    raise click.BadParameter(
        f"{value!r} is not an amount: write 5000000, 5M, 20GB, 20GiB or none.", param=param
    )


@click.group()
def quotas() -> None:
    """Quotas and budgets: how much of a limit there is for a month, a day or any 30 days.

    Running jobs are charged an estimate, which is corrected when the actual amount is known.
    """


@quotas.command(
    "list",
    epilog=options.examples(
        "trunkline quotas list",
        "trunkline quotas list --watch",
        "trunkline quotas list --json | jq '.[] | select(.exhausted)'",
    ),
)
@options.with_options(options.watch, options.dsn, options.as_json)
def list_(*, watch: bool, dsn: str | None, as_json: bool) -> None:
    """List quotas with what is spent of each and how long it lasts."""
    list_view(
        dsn,
        lambda operator: operator.quotas.list(),
        quota_table,
        empty=_EMPTY,
        watch=watch,
        as_json=as_json,
    )


@quotas.command(
    epilog=options.examples(
        "trunkline quotas show openai",
        "trunkline quotas show 'budget/{tenant}'",
        "trunkline quotas show budget/acme --json",
    )
)
@click.argument("name", metavar="NAME")
@options.with_options(options.dsn, options.as_json)
def show(*, name: str, dsn: str | None, as_json: bool) -> None:
    """Show a quota, or one key of it, in words.

    What is spent, reserved and left, at what pace, and when nothing will be left at that pace.
    """
    with opened(dsn) as session:
        operator = session.operator
        rows, now = operator.quotas.list(name), operator.now()
        known = [] if rows else sorted({row.limit for row in operator.quotas.list()})
    if not rows:
        raise UnknownLimit(
            "no quota of this name",
            hint="List the quotas with: trunkline quotas list",
            detail={"limit": name, "known": known, "server": session.address},
        )
    if as_json:
        print_json(rows)
        return
    out = console()
    put(out, facts_of(rows[0], now, out) if len(rows) == 1 else quota_table(rows, now, out))


@quotas.command(
    "set",
    epilog=options.examples(
        "trunkline quotas set maps --amount 20GiB --unit bytes --window 30d",
        "trunkline quotas set 'budget/{tenant}' --amount 5M --unit tokens --period month",
        "trunkline quotas set budget/acme --amount 20M --unit tokens --period month",
        "trunkline quotas set maps --low-share 0.5 --low-below 10 --wait",
        "trunkline quotas set maps --amount none",
    ),
)
@click.argument("name", metavar="NAME")
@click.option(
    "--amount",
    metavar="N|none",
    callback=_amount,
    help="For example 5000000, 5M or 20GiB; none: no quota.",
)
@click.option(
    "--unit",
    metavar="WORD",
    help="requests, tokens, bytes, or a word for the units of a job's cost.",
)
@click.option(
    "--window",
    type=options.DURATION,
    metavar="LENGTH",
    help="A sliding window, 1h to 366d [default: 30d].",
)
@click.option(
    "--period",
    type=click.Choice(["day", "month"]),
    help="Instead of a window: a budget for each calendar day or month, in UTC.",
)
@click.option(
    "--buffer",
    type=click.FloatRange(0, 1, min_open=True),
    metavar="SHARE",
    help="The share that jobs may take [default: 0.95 of a window, 1 of a period].",
)
@click.option(
    "--low-share",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="Low priorities wait from this share on [default: 0.75].",
)
@click.option(
    "--low-below",
    type=click.IntRange(-50, 50),
    metavar="PRIORITY",
    help="Priorities below this are low [default: 0].",
)
@click.option(
    "--refuse/--wait",
    "refuses",
    default=None,
    help="While it is spent, refuse new jobs (the default) or let them wait.",
)
@options.with_options(options.reason, options.dsn, options.as_json)
def set_(
    *,
    name: str,
    amount: tuple[int | None, bool] | None,
    unit: str | None,
    window: float | None,
    reason: str | None,
    dsn: str | None,
    as_json: bool,
    **others: Any,
) -> None:
    """Give a limit a quota, or change the given parts.

    A limit that does not exist is created. If the name has keys in braces, each value of them has a
    separate quota. A quota for a filled-in name takes precedence, for example to give one tenant
    more than the others.
    """
    parts = _parts(amount, unit, window, others)

    def save(operator: SyncOperator) -> bool:
        if amount is None and not _has_quota(operator, name):
            raise click.UsageError(f"{name} has no quota yet: pass --amount.")
        return operator.quotas.set(name, parts, reason=reason)

    removed = amount is not None and amount[0] is None
    result = "removed." if removed else "set. It applies from the next claim."
    change(
        save,
        lambda _: f"Quota of {clean(name)} {result}",
        lambda created: {"limit": name, "created": created, **parts},
        dsn=dsn,
        as_json=as_json,
    )


@quotas.command(
    epilog=options.examples(
        "trunkline quotas usage",
        "trunkline quotas usage --by tenant --since 2030-01-01",
        "trunkline quotas usage --by task --since 7d",
        "trunkline quotas usage --by limit --json | jq 'map(.cost) | add'",
    )
)
@click.option(
    "--by",
    type=click.Choice(["day", "limit", "task", "tenant"]),
    default="day",
    show_default=True,
    help="Sum by this, and by limit.",
)
@click.option(
    "--since",
    type=options.SINCE,
    metavar="DAY|LENGTH",
    default="30d",
    show_default=True,
    help="The first day that counts, in UTC.",
)
@options.with_options(options.dsn, options.as_json)
def usage(*, by: str, since: datetime | timedelta, dsn: str | None, as_json: bool) -> None:
    """Show the usage ledger: what jobs and grants took.

    Calls, requests, tokens, units and money, as settled; otherwise as estimated. A call that takes
    from several limits has a line for each of them; its cost in money is counted once.
    """
    with opened(dsn) as session:
        operator = session.operator
        rows = operator.quotas.usage(cast("UsageBy", by), options.since_time(since, operator.now()))
    if as_json:
        keys = {by, "limit", "calls", "requests", "tokens", "units", "cost"}
        print_json(
            [{key: value for key, value in row._asdict().items() if key in keys} for row in rows]
        )
        return
    show_table(
        usage_columns(by), rows, nothing="No usage in that time. Look further back: --since 90d"
    )
    if len({row.cost for row in rows}) > 1:
        click.echo(f"\nTotal cost: {money(sum(row.cost for row in rows))}")


def _parts(
    amount: tuple[int | None, bool] | None,
    unit: str | None,
    window: float | None,
    others: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the parts of a limit that the options stand for."""
    if amount is not None and amount[1]:
        if unit not in {None, "bytes"}:
            raise click.UsageError(f"The amount is in bytes, but --unit is {unit}.")
        unit = "bytes"
    if window is not None and others.get("period") is not None:
        raise click.UsageError("A quota has --window or --period, not both.")
    parts: dict[str, Any] = {} if amount is None else {"quota": amount[0]}
    values = {
        "unit": unit,
        "window": None if window is None else f"{window} seconds",
        **others,
    }
    parts |= {f"quota_{part}": value for part, value in values.items() if value is not None}
    if not parts:
        raise click.UsageError("Pass an amount, such as --amount 5M --unit tokens.")
    return parts


def _has_quota(operator: SyncOperator, name: str) -> bool:
    return any(row.name == name and row.quota is not None for row in operator.limits.list())

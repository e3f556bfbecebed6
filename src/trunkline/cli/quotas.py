"""``trunkline quotas``: how much there is for a month or a day, what is spent, and the books."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, cast

import click

from trunkline.cli import options

# Imports of the driver and of rich wait until a command runs, so that help is quick.
if TYPE_CHECKING:
    from trunkline.cli.connection import Session
    from trunkline.model import UsageBy

__all__ = ["quotas"]

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
    """A number and whether it was given in bytes; None in its place: no quota."""
    if value is None:
        return None
    if value == "none":
        return None, False
    found = _AMOUNT.fullmatch(value.strip())
    if found is not None:
        number = float(re.sub("[_,]", "", found[1])) * _UNITS[(found[2] or "").lower()]
        if number == int(number) <= _MOST:
            return int(number), found[3] is not None
    raise click.BadParameter(
        f"{value!r} is no amount: write 5000000, 5M, 20GB, 20GiB or none.", param=param
    )


def _since(_ctx: click.Context, param: click.Parameter, value: str) -> Any:
    """A day, or how far back."""
    from trunkline.errors import InvalidDuration  # noqa: PLC0415 - see above
    from trunkline.model import seconds  # noqa: PLC0415 - see above

    try:
        return timedelta(seconds=seconds(value))
    except InvalidDuration:
        pass
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is neither a day such as 2030-01-31 nor a length of time such as 30d.",
            param=param,
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


@click.group()
def quotas() -> None:
    """Quotas and budgets: how much of a limit there is for a month, a day or any 30 days.

    What runs is charged as estimated and corrected by what it really took.
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
    """List quotas with what is spent of each, and when it will be spent."""
    from trunkline.cli.listing import list_view  # noqa: PLC0415 - see above
    from trunkline.cli.quota_views import listed  # noqa: PLC0415 - see above
    from trunkline.db.calls import quotas as calls  # noqa: PLC0415 - see above

    list_view(
        dsn,
        calls.quotas(),
        listed,
        nothing="No quotas yet: make one with trunkline quotas set NAME --amount 20GiB",
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

    What is spent, reserved and left, at what pace, and when it will be spent if that goes on.
    """
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see above
    from trunkline.cli.output import print_json  # noqa: PLC0415 - see above
    from trunkline.cli.quota_views import listed, told  # noqa: PLC0415 - see above
    from trunkline.cli.tables import console, put  # noqa: PLC0415 - see above
    from trunkline.db.calls import quotas as calls  # noqa: PLC0415 - see above

    with opened(dsn) as session:
        found, now = session.ask(calls.quotas(name)), session.now()
        if not found:
            _refuse_unknown(session, name)
    if as_json:
        print_json(found)
        return
    out = console()
    if len(found) == 1:
        put(out, told(found[0], now, out))
    else:
        put(out, listed(found, now, out))


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
    help="How much, such as 5000000, 5M or 20GiB; none: no quota.",
)
@click.option(
    "--unit",
    metavar="WORD",
    help="requests, tokens, or a word for what the units of a job's cost are.",
)
@click.option(
    "--window",
    type=options.DURATION,
    metavar="LENGTH",
    help="Any so long a time, 1h to 366d; 30d unless told.",
)
@click.option(
    "--period",
    type=click.Choice(["day", "month"]),
    help="Instead of a window: a budget for each day or month of the calendar, in UTC.",
)
@click.option(
    "--buffer",
    type=click.FloatRange(0, 1, min_open=True),
    metavar="SHARE",
    help="What share of it is given out; 0.95 of a window and 1 of a period unless told.",
)
@click.option(
    "--low-share",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="From this share on low priorities wait; 0.75 unless told.",
)
@click.option(
    "--low-below",
    type=click.IntRange(-50, 50),
    metavar="PRIORITY",
    help="Priorities below this are low; 0 unless told.",
)
@click.option(
    "--refuse/--wait",
    "refuses",
    default=None,
    help="While it is spent, refuse new jobs, which is the default, or let them wait.",
)
@options.with_options(options.dsn, options.as_json)
def set_(
    *,
    name: str,
    amount: tuple[int | None, bool] | None,
    unit: str | None,
    window: float | None,
    dsn: str | None,
    as_json: bool,
    **others: Any,
) -> None:
    """Give a limit a quota, or change the parts that are given.

    A limit that is not there yet is made. With keys in braces each value of them has a quota of its
    own, and one for a filled-in name goes before it: so a tenant gets more than the others.
    """
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see above
    from trunkline.cli.output import print_json  # noqa: PLC0415 - see above
    from trunkline.db.calls import flow  # noqa: PLC0415 - see above

    given = _given(amount, unit, window, others)
    with opened(dsn) as session:
        if amount is None and not _has_quota(session, name):
            raise click.UsageError(f"{name} has no quota yet: say how much with --amount.")
        created = session.ask(flow.set_limit(name, given))
    if as_json:
        print_json({"limit": name, "created": created, **given})
    elif amount is not None and amount[0] is None:
        click.echo(f"{name} has no quota any more")
    else:
        click.echo(f"{name} has a quota: it counts from the next claim on")


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
    help="What the lines tell apart, beside the limit.",
)
@click.option(
    "--since",
    metavar="DAY|LENGTH",
    default="30d",
    show_default=True,
    callback=_since,
    help="The first day that counts, in UTC.",
)
@options.with_options(options.dsn, options.as_json)
def usage(*, by: str, since: datetime | timedelta, dsn: str | None, as_json: bool) -> None:
    """Show the books: what jobs and grants have really taken.

    Calls, requests, tokens, units and money, as settled, or as estimated where nobody did.
    A call that takes from several limits is told for each of them; its cost in money only once.
    """
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see above
    from trunkline.cli.output import print_json  # noqa: PLC0415 - see above
    from trunkline.cli.quota_views import books, money  # noqa: PLC0415 - see above
    from trunkline.cli.tables import show as shown  # noqa: PLC0415 - see above
    from trunkline.db.calls import quotas as calls  # noqa: PLC0415 - see above

    with opened(dsn) as session:
        first = since if isinstance(since, datetime) else session.now() - since
        found = session.ask(calls.usage(cast("UsageBy", by), first))
    if as_json:
        kept = {by, "limit", "calls", "requests", "tokens", "units", "cost"}
        print_json(
            [{key: value for key, value in row._asdict().items() if key in kept} for row in found]
        )
        return
    shown(books(by), found, nothing="Nothing was spent in that time")
    if len({row.cost for row in found}) > 1:
        click.echo(f"\n{money(sum(row.cost for row in found))} in all")


def _given(
    amount: tuple[int | None, bool] | None,
    unit: str | None,
    window: float | None,
    others: Mapping[str, Any],
) -> dict[str, Any]:
    """The parts of a limit that the options of a command mean."""
    if amount is not None and amount[1]:
        if unit not in {None, "bytes"}:
            raise click.UsageError(f"An amount in bytes is no amount of {unit}.")
        unit = "bytes"
    if window is not None and others.get("period") is not None:
        raise click.UsageError("A quota has --window or --period, not both.")
    given: dict[str, Any] = {} if amount is None else {"quota": amount[0]}
    said = {
        "unit": unit,
        "window": None if window is None else f"{window} seconds",
        **others,
    }
    given |= {f"quota_{part}": value for part, value in said.items() if value is not None}
    if not given:
        raise click.UsageError("Say how much there is, such as --amount 5M --unit tokens.")
    return given


def _has_quota(session: Session, name: str) -> bool:
    from trunkline.db.calls import flow  # noqa: PLC0415 - see above

    return any(row.name == name and row.quota is not None for row in session.ask(flow.limits()))


def _refuse_unknown(session: Session, name: str) -> None:
    from trunkline.db.calls import quotas as calls  # noqa: PLC0415 - see above
    from trunkline.errors import UnknownLimit  # noqa: PLC0415 - see above

    known = sorted({row.limit for row in session.ask(calls.quotas())})
    raise UnknownLimit(
        "no quota of this name",
        hint="See trunkline quotas list, or make it with trunkline quotas set NAME --amount N.",
        detail={"limit": name, "known": known},
    )

"""``trunkline breakers``: limits that stop for a while when what is behind them fails."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import click

from trunkline.cli import options
from trunkline.cli.actions import change
from trunkline.cli.connection import opened
from trunkline.cli.listing import list_rows
from trunkline.cli.output import capped, clean, count, moment, print_json, relative
from trunkline.cli.tables import Column
from trunkline.model import BreakerStatus
from trunkline.operate import SyncOperator

__all__ = ["breakers"]

_EMPTY = "No breakers yet. Give a limit one with: trunkline breakers set NAME"
_STYLES = {"open": "red", "half_open": "yellow", "closed": "green"}
# The number of failures of a new breaker.
_FAILURES: Final = 10

_name = click.argument("name", metavar="NAME")


def _failures(_ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    """Check a whole number from one on, or none."""
    if value is None or value == "none" or (value.isdecimal() and int(value)):
        return value
    raise click.BadParameter(f"{value!r} is neither a whole number from 1 nor none.", param=param)


@click.group()
def breakers() -> None:
    """Breakers: a limit stops for a while when too many attempts behind it fail.

    A breaker stays open until one job, the probe, succeeds. Waiting jobs use up no attempt.
    """


@breakers.command(
    "list",
    epilog=options.examples(
        "trunkline breakers list",
        "trunkline breakers list --watch",
        "trunkline breakers list --json | jq '.[] | select(.state != \"closed\")'",
    ),
)
@options.with_options(options.watch, options.dsn, options.as_json)
def list_(*, watch: bool, dsn: str | None, as_json: bool) -> None:
    """List breakers with what they count, open ones first."""
    list_rows(
        dsn,
        lambda operator: operator.breakers.list(),
        lambda now, _out: _columns(now),
        empty=_EMPTY,
        watch=watch,
        as_json=as_json,
    )


@breakers.command(
    "set",
    epilog=options.examples(
        "trunkline breakers set openai",
        "trunkline breakers set 'openai/{model}' --failures 20 --share 0.5 --window 5m",
        "trunkline breakers set openai --probe-after 30s",
        "trunkline breakers set openai --failures none --reason 'provider is stable'",
    ),
)
@_name
@click.option(
    "--failures",
    metavar="N|none",
    callback=_failures,
    help="Open at this many failed attempts in the window [default: 10]; none: no breaker.",
)
@click.option(
    "--share",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="And only at this share of all attempts [default: 0.2].",
)
@click.option("--window", type=options.DURATION, metavar="LENGTH", help="1m to 1d [default: 10m].")
@click.option(
    "--probe-after",
    type=options.DURATION,
    metavar="LENGTH",
    help="How long it is open before one job is tried, 1s to 1d [default: 1m].",
)
@options.with_options(options.reason, options.dsn, options.as_json)
def set_(
    *,
    name: str,
    failures: str | None,
    share: float | None,
    window: float | None,
    probe_after: float | None,
    reason: str | None,
    dsn: str | None,
    as_json: bool,
) -> None:
    """Give a limit a breaker, or change the given parts.

    A limit that does not exist is created. One with keys in braces has a breaker for each of them.
    """
    parts: dict[str, int | float | str | None] = {}
    if failures is not None:
        parts["breaker_failures"] = None if failures == "none" else int(failures)
    if share is not None:
        parts["breaker_share"] = share
    if window is not None:
        parts["breaker_window"] = f"{window} seconds"
    if probe_after is not None:
        parts["breaker_probe_after"] = f"{probe_after} seconds"

    def save(operator: SyncOperator) -> bool:
        if failures is None and not _has_breaker(operator, name):
            parts["breaker_failures"] = _FAILURES
        return operator.breakers.set(name, parts, reason=reason)

    removed = failures == "none"
    result = "removed." if removed else "set. It counts attempts that fail from now on."
    change(
        save,
        lambda _: f"Breaker of {clean(name)} {result}",
        lambda created: {"limit": name, "created": created, **parts},
        dsn=dsn,
        as_json=as_json,
    )


@breakers.command(
    epilog=options.examples(
        "trunkline breakers reset openai", "trunkline breakers reset 'openai/{model}'"
    )
)
@_name
@options.with_options(options.reason, options.dsn, options.as_json)
def reset(*, name: str, reason: str | None, dsn: str | None, as_json: bool) -> None:
    """Close a breaker, or those of all keys of a limit, now.

    Earlier failures no longer count.
    """

    def message(closed: int) -> str:
        if not closed:
            return f"Breaker of {clean(name)} was not open."
        if "{" in name:
            return f"{count(closed, 'breaker')} of {clean(name)} closed."
        return f"Breaker of {clean(name)} closed."

    change(
        lambda operator: operator.breakers.reset(name, reason=reason),
        message,
        lambda closed: {"breaker": name, "closed": closed},
        dsn=dsn,
        as_json=as_json,
    )


@breakers.command(
    epilog=options.examples(
        "trunkline breakers trip openai --reason 'answers make no sense' --for 15m"
    )
)
@_name
@click.option(
    "--for",
    "length",
    type=options.DURATION,
    metavar="LENGTH",
    help="How long until one job is tried [default: --probe-after of the breaker].",
)
@options.with_options(options.reason, options.dsn, options.as_json)
def trip(
    *, name: str, reason: str | None, length: float | None, dsn: str | None, as_json: bool
) -> None:
    """Open a breaker by hand; running jobs continue."""
    with opened(dsn) as session:
        probe_at = session.operator.breakers.trip(name, length=length, reason=reason)
        now = session.operator.now()
    if as_json:
        print_json({"breaker": name, "state": "open", "probe_at": probe_at, "reason": reason})
    else:
        click.echo(
            f"Breaker of {clean(name)} opened. Running jobs continue; the next job is tried at"
            f" {moment(probe_at, now)}."
        )


def _has_breaker(operator: SyncOperator, name: str) -> bool:
    return any(
        row.name == name and row.breaker_failures is not None for row in operator.limits.list()
    )


def _columns(now: datetime) -> list[Column[BreakerStatus]]:
    def share(row: BreakerStatus) -> str:
        return "" if row.share is None else f"{row.share:.0%}/{row.breaker_share:.0%}"

    def probe(row: BreakerStatus) -> str:
        if row.state == "half_open":
            return "the next job" if row.probe_job is None else f"job {row.probe_job}"
        if row.probe_at is None:
            return ""
        return "the next job" if row.probe_at <= now else relative(row.probe_at, now)

    def note(row: BreakerStatus) -> str:
        return clean(row.reason) if row.reason and row.state != "closed" else ""

    return [
        Column("BREAKER", lambda row: clean(row.name), elastic=True),
        Column("STATE", lambda row: row.state, lambda row: _STYLES[row.state]),
        Column(
            "FAILED", lambda row: f"{row.failures:,}/{row.breaker_failures:,}", right=True, rank=1
        ),
        Column("SHARE", share, right=True, rank=2),
        Column("PROBE", probe, rank=1, elastic=True),
        Column("WAITING", lambda row: capped(row.waiting, row.counted_up_to), right=True, rank=1),
        Column("SINCE", lambda row: relative(row.changed_at, now), rank=3),
        Column("", note, "red", rank=2, elastic=True),
    ]

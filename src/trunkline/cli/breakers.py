"""``trunkline breakers``: limits that stop for a while when what is behind them fails."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from trunkline.cli import options

# Imports of the driver and of rich wait until a command runs, so that help is quick.
if TYPE_CHECKING:
    from trunkline.cli.tables import Column
    from trunkline.model import BreakerStatus

__all__ = ["breakers"]

_name = click.argument("name", metavar="NAME")

_STYLES = {"open": "red", "half_open": "yellow", "closed": "green"}


def _failures(_ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    """A whole number from one on, or none."""
    if value is None or value == "none" or (value.isdecimal() and int(value)):
        return value
    raise click.BadParameter(f"{value!r} is neither a whole number from 1 nor none.", param=param)


@click.group()
def breakers() -> None:
    """Breakers: a limit stops for a while when too many attempts behind it fail.

    It is open until one job, the probe, succeeds. What waits meanwhile uses no attempt.
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
    """List breakers with what they count; those that are open first."""
    from trunkline.cli.listing import list_rows  # noqa: PLC0415 - see above
    from trunkline.db.calls import breakers as calls  # noqa: PLC0415 - see above

    list_rows(
        dsn,
        calls.breakers(),
        lambda now, _out: _columns(now),
        nothing="No breakers yet: give a limit one with trunkline breakers set NAME",
        watch=watch,
        as_json=as_json,
    )


@breakers.command(
    "set",
    epilog=options.examples(
        "trunkline breakers set openai",
        "trunkline breakers set 'openai/{model}' --failures 20 --share 0.5 --window 5m",
        "trunkline breakers set openai --probe-after 30s",
        "trunkline breakers set openai --failures none",
    ),
)
@_name
@click.option(
    "--failures",
    metavar="N|none",
    callback=_failures,
    help="So many failed attempts within the window, at least; 10 unless told. none: no breaker.",
)
@click.option(
    "--share",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="And such a share of all attempts, at least; 0.2 unless told.",
)
@click.option(
    "--window", type=options.DURATION, metavar="LENGTH", help="1m to 1d; 10m unless told."
)
@click.option(
    "--probe-after",
    type=options.DURATION,
    metavar="LENGTH",
    help="How long it is open before one job is tried, 1s to 1d; 1m unless told.",
)
@options.with_options(options.dsn, options.as_json)
def set_(
    *,
    name: str,
    failures: str | None,
    share: float | None,
    window: float | None,
    probe_after: float | None,
    dsn: str | None,
    as_json: bool,
) -> None:
    """Give a limit a breaker, or change the parts that are given.

    A limit that is not there yet is made. One with keys in braces has a breaker for each of them.
    """
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see above
    from trunkline.cli.output import print_json  # noqa: PLC0415 - see above
    from trunkline.db.calls import breakers as calls  # noqa: PLC0415 - see above

    given: dict[str, int | float | str | None] = {}
    if failures is not None:
        given["breaker_failures"] = None if failures == "none" else int(failures)
    if share is not None:
        given["breaker_share"] = share
    if window is not None:
        given["breaker_window"] = f"{window} seconds"
    if probe_after is not None:
        given["breaker_probe_after"] = f"{probe_after} seconds"
    with opened(dsn) as session:
        if failures is None and not session.ask(calls.has_breaker(name)):
            given = {"breaker_failures": 10, **given}
        created = session.ask(calls.set_breaker(name, given))
    if as_json:
        print_json({"limit": name, "created": created, **given})
    elif failures == "none":
        click.echo(f"{name} has no breaker any more")
    else:
        click.echo(f"{name} has a breaker: it counts what fails from now on")


@breakers.command(
    epilog=options.examples(
        "trunkline breakers reset openai", "trunkline breakers reset 'openai/{model}'"
    )
)
@_name
@options.with_options(options.dsn, options.as_json)
def reset(*, name: str, dsn: str | None, as_json: bool) -> None:
    """Close a breaker, or those of all keys of a limit, now.

    What has failed so far does not count any more.
    """
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see above
    from trunkline.cli.output import count, print_json  # noqa: PLC0415 - see above
    from trunkline.db.calls import breakers as calls  # noqa: PLC0415 - see above

    with opened(dsn) as session:
        closed = session.ask(calls.reset_breaker(name))
    if as_json:
        print_json({"breaker": name, "closed": closed})
    elif closed:
        click.echo(f"{name}: {count(closed, 'breaker')} closed")
    else:
        click.echo(f"{name} was not open")


@breakers.command(
    epilog=options.examples(
        "trunkline breakers trip openai --reason 'answers make no sense' --for 15m"
    )
)
@_name
@click.option("--reason", metavar="TEXT", help="Shown to whoever asks why.")
@click.option(
    "--for",
    "length",
    type=options.DURATION,
    metavar="LENGTH",
    help="Until one job is tried; as the breaker says unless told.",
)
@options.with_options(options.dsn, options.as_json)
def trip(
    *, name: str, reason: str | None, length: float | None, dsn: str | None, as_json: bool
) -> None:
    """Open a breaker by hand; what runs goes on."""
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see above
    from trunkline.cli.output import moment, print_json  # noqa: PLC0415 - see above
    from trunkline.db.calls import breakers as calls  # noqa: PLC0415 - see above
    from trunkline.model.duration import interval  # noqa: PLC0415 - see above

    with opened(dsn) as session:
        probe_at = session.ask(calls.trip_breaker(name, reason, interval(length)))
        now = session.now()
    if as_json:
        print_json({"breaker": name, "state": "open", "probe_at": probe_at, "reason": reason})
    else:
        click.echo(f"{name} is open: one job is tried {moment(probe_at, now)}")


def _columns(now: datetime) -> list[Column[Any]]:
    from trunkline.cli.output import capped, clean, relative  # noqa: PLC0415 - see above
    from trunkline.cli.tables import Column  # noqa: PLC0415 - see above

    def share(row: BreakerStatus) -> str:
        return "" if row.share is None else f"{row.share:.0%}/{row.breaker_share:.0%}"

    def probe(row: BreakerStatus) -> str:
        if row.state == "half_open":
            return "the next job" if row.probe_job is None else f"job {row.probe_job}"
        if row.probe_at is None:
            return ""
        return "the next job" if row.probe_at <= now else relative(row.probe_at, now)

    def why(row: BreakerStatus) -> str:
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
        Column("", why, "red", rank=2, elastic=True),
    ]

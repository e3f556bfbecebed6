"""``trunkline limits``: what providers allow, and how much of it is in use."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from trunkline.cli import options

# Imports of the driver and of rich wait until a command runs, so that help is quick.
if TYPE_CHECKING:
    from trunkline.cli.connection import Session
    from trunkline.cli.tables import Column
    from trunkline.db.calls.flow import LimitRow

__all__ = ["limits"]


_Command = Callable[..., None]


def _amount(_ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    """A whole number from zero on, or none."""
    if value is None or value == "none" or value.isdecimal():
        return value
    raise click.BadParameter(f"{value!r} is neither a whole number nor none.", param=param)


def _part(name: str, words: str) -> Callable[[_Command], _Command]:
    return click.option(f"--{name}", metavar="N|none", callback=_amount, help=words)


@click.group()
def limits() -> None:
    """Limits: what a provider allows the whole fleet. Jobs over a limit wait unclaimed."""


@limits.command(
    "list",
    epilog=options.examples(
        "trunkline limits list",
        "trunkline limits list --watch",
        "trunkline limits list --json | jq '.[] | select(.waiting > 0)'",
    ),
)
@options.with_options(options.watch, options.dsn, options.as_json)
def list_(*, watch: bool, dsn: str | None, as_json: bool) -> None:
    """List limits with what is in use of each and how many jobs wait."""
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see above
    from trunkline.cli.output import print_json  # noqa: PLC0415 - see above
    from trunkline.cli.tables import live, show, table  # noqa: PLC0415 - see above
    from trunkline.db.calls import flow  # noqa: PLC0415 - see above

    with opened(dsn) as session:
        if watch:
            live(
                lambda: session.persist(lambda: session.ask(flow.limits())),
                lambda found, out: table(_columns("LIMIT"), found, out.width),
                as_json=as_json,
            )
            return
        found = session.ask(flow.limits())
    if as_json:
        print_json(found)
    else:
        nothing = "No limits yet: make one with trunkline limits set NAME --requests-per-minute 60"
        show(_columns("LIMIT"), found, nothing=nothing)


@limits.command(
    "set",
    epilog=options.examples(
        "trunkline limits set openai --requests-per-minute 500 --tokens-per-minute 200000",
        "trunkline limits set 'document/{document}' --concurrency 1",
        "trunkline limits set openai --tokens-per-minute none",
    ),
)
@click.argument("name", metavar="NAME")
@_part("requests-per-minute", "In any 60 seconds; none: no limit.")
@_part("requests-per-hour", "In any 3600 seconds; none: no limit.")
@_part("tokens-per-minute", "As the cost of each job says; none: no limit.")
@_part("tokens-per-hour", "As the cost of each job says; none: no limit.")
@_part("concurrency", "Running at once; none: no limit.")
@options.with_options(options.dsn, options.as_json)
def set_(*, name: str, dsn: str | None, as_json: bool, **parts: str | None) -> None:
    """Make a limit, or change the parts that are given.

    A name with keys in braces is a limit of its own for each value that payloads have there.
    """
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see above
    from trunkline.cli.output import print_json  # noqa: PLC0415 - see above
    from trunkline.db.calls import flow  # noqa: PLC0415 - see above

    given = {
        part: None if value == "none" else int(value)
        for part, value in parts.items()
        if value is not None
    }
    if not given:
        raise click.UsageError("Say what it allows, such as --requests-per-minute 60.")
    with opened(dsn) as session:
        created = session.ask(flow.set_limit(name, given))
    if as_json:
        print_json({"limit": name, "created": created, **given})
    else:
        click.echo(
            f"{name} is {'made' if created else 'changed'}: it counts from the next claim on"
        )


@limits.command(
    epilog=options.examples("trunkline limits show openai", "trunkline limits show openai --json")
)
@click.argument("name", metavar="NAME")
@options.with_options(options.dsn, options.as_json)
def show(*, name: str, dsn: str | None, as_json: bool) -> None:
    """Show a limit, and each of its keys that was used lately."""
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see above
    from trunkline.cli.output import print_json  # noqa: PLC0415 - see above
    from trunkline.cli.tables import show as shown  # noqa: PLC0415 - see above
    from trunkline.db.calls import flow  # noqa: PLC0415 - see above

    with opened(dsn) as session:
        found = _found(session, name)
        gates = session.ask(flow.gates(name))
    if as_json:
        print_json({**found._asdict(), "keys": [gate._asdict() for gate in gates]})
        return
    shown(_columns("LIMIT"), [found], nothing="")
    if any(gate.name != name for gate in gates):
        click.echo()
        shown(_columns("KEY"), [_as_limit(gate, found) for gate in gates], nothing="")


@limits.command(
    epilog=options.examples("trunkline limits pause openai --reason 'key is being changed'")
)
@click.argument("name", metavar="NAME")
@click.option("--reason", metavar="TEXT", help="Shown to whoever asks why.")
@options.with_options(options.dsn, options.as_json)
def pause(*, name: str, reason: str | None, dsn: str | None, as_json: bool) -> None:
    """Start no job that takes from it; what runs goes on."""
    _set_status(name, "maintenance", reason, f"{name} is paused", dsn=dsn, as_json=as_json)


@limits.command(epilog=options.examples("trunkline limits resume openai"))
@click.argument("name", metavar="NAME")
@options.with_options(options.dsn, options.as_json)
def resume(*, name: str, dsn: str | None, as_json: bool) -> None:
    """Give from it again."""
    _set_status(name, "active", None, f"{name} goes on", dsn=dsn, as_json=as_json)


def _set_status(
    name: str, status: str, reason: str | None, told: str, *, dsn: str | None, as_json: bool
) -> None:
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see above
    from trunkline.cli.output import print_json  # noqa: PLC0415 - see above
    from trunkline.db.calls import flow  # noqa: PLC0415 - see above

    with opened(dsn) as session:
        _found(session, name)
        session.ask(flow.set_limit(name, {}, status, reason))
    if as_json:
        print_json({"limit": name, "status": status, "reason": reason})
    else:
        click.echo(told)


def _found(session: Session, name: str) -> LimitRow:
    from trunkline.db.calls import flow  # noqa: PLC0415 - see above
    from trunkline.errors import UnknownLimit  # noqa: PLC0415 - see above

    known = {limit.name: limit for limit in session.ask(flow.limits())}
    if name not in known:
        raise UnknownLimit(
            "unknown limit",
            hint="See trunkline limits list.",
            detail={"limit": name, "known": list(known)},
        )
    return known[name]


def _as_limit(gate: Any, limit: Any) -> Any:
    """A key with the numbers that its limit allows it."""
    return limit._replace(**{name: getattr(gate, name) for name in gate._fields if name != "limit"})


def _columns(title: str) -> list[Column[Any]]:
    from trunkline.cli.output import amount  # noqa: PLC0415 - see above
    from trunkline.cli.tables import Column  # noqa: PLC0415 - see above

    def used(title: str, taken: str, allowed: str, rank: int) -> Column[Any]:
        def text(row: Any) -> str:
            most = getattr(row, allowed)
            return "" if most is None else f"{getattr(row, taken):,}/{most:,}"

        def style(row: Any) -> str:
            most = getattr(row, allowed)
            return "yellow" if most is not None and getattr(row, taken) >= most else ""

        return Column(title, text, style, right=True, rank=rank)

    def state(row: Any) -> str:
        if row.status == "active":
            return ""
        return f"{row.status}: {row.reason}" if row.reason else str(row.status)

    return [
        Column(title, lambda row: row.name, elastic=True),
        used("RUNNING", "in_use", "concurrency", 0),
        used("REQ/MIN", "requests_of_minute", "requests_per_minute", 0),
        used("REQ/H", "requests_of_hour", "requests_per_hour", 3),
        used("TOKENS/MIN", "tokens_of_minute", "tokens_per_minute", 1),
        used("TOKENS/H", "tokens_of_hour", "tokens_per_hour", 4),
        Column("WAITING", lambda row: amount(row.waiting), right=True, rank=0),
        Column("", state, "red", rank=2, elastic=True),
    ]

"""``trunkline limits``: what providers allow, and how much of it is in use."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from trunkline.cli import options

# Imports of the driver and of rich wait until a command runs, so that help is quick.
if TYPE_CHECKING:
    from trunkline.cli.connection import Session
    from trunkline.model import LimitStatus

__all__ = ["limits"]


_Command = Callable[..., None]


def _amount(_ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    """A whole number from zero on, or none."""
    if value is None or value == "none" or value.isdecimal():
        return value
    raise click.BadParameter(f"{value!r} is neither a whole number nor none.", param=param)


def _share(_ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    """A share above 0 and up to 1, or none."""
    if value is None or value == "none":
        return value
    try:
        if 0 < float(value) <= 1:
            return value
    except ValueError:
        pass
    raise click.BadParameter(f"{value!r} is neither a share such as 0.8 nor none.", param=param)


def _length(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    """A length of time, or none."""
    if value is None or value == "none":
        return value
    return f"{options.DURATION.convert(value, param, ctx)} seconds"


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
    from trunkline.cli.limit_views import columns  # noqa: PLC0415 - see above
    from trunkline.cli.listing import list_rows  # noqa: PLC0415 - see above
    from trunkline.db.calls import flow  # noqa: PLC0415 - see above

    list_rows(
        dsn,
        flow.limits(),
        lambda now, out: columns("LIMIT", now, out),
        nothing="No limits yet: make one with trunkline limits set NAME --requests-per-minute 60",
        watch=watch,
        as_json=as_json,
    )


@limits.command(
    "set",
    epilog=options.examples(
        "trunkline limits set openai --requests-per-minute 500 --tokens-per-minute 200000",
        "trunkline limits set 'document/{document}' --concurrency 1",
        "trunkline limits set openai --backpressure-threshold 0.8 --backpressure-delay 30s",
        "trunkline limits set openai --depth-limit 10000",
        "trunkline limits set 'fair:mail/{tenant}' --share-cap 2",
        "trunkline limits set fair:mail/acme --weight 3",
        "trunkline limits set openai --tokens-per-minute none",
    ),
)
@click.argument("name", metavar="NAME")
@_part("requests-per-minute", "In any 60 seconds; none: no limit.")
@_part("requests-per-hour", "In any 3600 seconds; none: no limit.")
@_part("tokens-per-minute", "As the cost of each job says; none: no limit.")
@_part("tokens-per-hour", "As the cost of each job says; none: no limit.")
@_part("concurrency", "Running at once; none: no limit.")
@click.option(
    "--backpressure-threshold",
    metavar="SHARE|none",
    callback=_share,
    help="Above this share of the minute new jobs are put off by the delay.",
)
@click.option(
    "--backpressure-delay",
    metavar="LENGTH|none",
    callback=_length,
    help="By how long new jobs are put off, at most 1d.",
)
@_part("depth-limit", "So many jobs wait for it at most; none: no limit.")
@click.option(
    "--depth-refuse/--depth-delay",
    "depth_refuses",
    default=None,
    help="Above the depth limit refuse new jobs, which is the default, or put them off.",
)
@_part("weight", "How many times the share of others of its share group: 1 unless told.")
@_part("share-cap", "So many at once of one key at most while others of its share group wait.")
@options.with_options(options.dsn, options.as_json)
def set_(
    *, name: str, depth_refuses: bool | None, dsn: str | None, as_json: bool, **parts: str | None
) -> None:
    """Make a limit, or change the parts that are given.

    A name with keys in braces is a limit of its own for each value that payloads have there. Quotas
    are set with trunkline quotas set. Limits of a share group, such as fair:mail/{tenant}, share
    fairly.
    """
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see above
    from trunkline.cli.output import print_json  # noqa: PLC0415 - see above
    from trunkline.db.calls import flow  # noqa: PLC0415 - see above

    given: dict[str, Any] = {
        part: None if value == "none" else _value(part, value)
        for part, value in parts.items()
        if value is not None
    }
    if depth_refuses is not None:
        given["depth_refuses"] = depth_refuses
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
    """Show a limit with all of its parts, and its keys used lately.

    With what its provider said, where it asked for a pause, and how often calls were refused.
    """
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see above
    from trunkline.cli.limit_views import columns, parts, with_key  # noqa: PLC0415 - see above
    from trunkline.cli.output import print_json  # noqa: PLC0415 - see above
    from trunkline.cli.tables import console, put, table  # noqa: PLC0415 - see above
    from trunkline.db.calls import flow  # noqa: PLC0415 - see above

    with opened(dsn) as session:
        found = _found(session, name)
        buckets, now = session.ask(flow.buckets(name)), session.now()
    if as_json:
        print_json({**found._asdict(), "keys": [bucket._asdict() for bucket in buckets]})
        return
    out = console()
    put(out, parts(found, buckets, now, out))
    if any(bucket.name != name for bucket in buckets):
        keys = [with_key(found, bucket) for bucket in buckets]
        click.echo()
        put(out, table(columns("KEY", now, out), keys, out.width))


@limits.command(
    epilog=options.examples("trunkline limits pause openai --reason 'key is being changed'")
)
@click.argument("name", metavar="NAME")
@click.option("--reason", metavar="TEXT", help="Shown to whoever asks why.")
@options.with_options(options.dsn, options.as_json)
def pause(*, name: str, reason: str | None, dsn: str | None, as_json: bool) -> None:
    """Start no job that takes from it; what runs goes on."""
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see above
    from trunkline.cli.output import print_json  # noqa: PLC0415 - see above
    from trunkline.db.calls import flow  # noqa: PLC0415 - see above

    with opened(dsn) as session:
        _found(session, name)
        session.ask(flow.set_limit(name, {}, "maintenance", reason))
    if as_json:
        print_json({"limit": name, "status": "maintenance", "reason": reason})
    else:
        click.echo(f"{name} is paused")


@limits.command(epilog=options.examples("trunkline limits resume openai"))
@click.argument("name", metavar="NAME")
@options.with_options(options.dsn, options.as_json)
def resume(*, name: str, dsn: str | None, as_json: bool) -> None:
    """Give from it again, also where its provider asked for a pause."""
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see above
    from trunkline.cli.output import count, print_json  # noqa: PLC0415 - see above
    from trunkline.db.calls import flow  # noqa: PLC0415 - see above

    lifted = []
    with opened(dsn) as session:
        _found(session, name)
        session.ask(flow.set_limit(name, {}, "active"))
        for paused in session.ask(flow.paused(name)):
            session.ask(flow.observe_limit(paused, {"retry_after": 0}, {}))
            lifted.append(paused)
    if as_json:
        print_json({"limit": name, "status": "active", "reason": None, "lifted": lifted})
    else:
        more = f", {count(len(lifted), 'pause')} of its provider lifted" if lifted else ""
        click.echo(f"{name} goes on{more}")


def _value(part: str, text: str) -> int | float | str:
    if part == "backpressure_delay":
        return text
    return float(text) if part == "backpressure_threshold" else int(text)


def _found(session: Session, name: str) -> LimitStatus:
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

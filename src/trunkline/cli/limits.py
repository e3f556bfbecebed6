"""``trunkline limits``: what providers allow, and how much of it is in use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from trunkline.cli import options
from trunkline.cli.actions import change
from trunkline.cli.connection import opened
from trunkline.cli.limit_views import columns, parts_of, with_key
from trunkline.cli.listing import list_rows
from trunkline.cli.output import clean, count, print_json
from trunkline.cli.tables import console, put, table

__all__ = ["limits"]

_EMPTY = "No limits yet. Create one with: trunkline limits set NAME --requests-per-minute 60"

_Command = Callable[..., None]


def _amount(_ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    """Check a whole number from zero on, or none."""
    if value is None or value == "none" or value.isdecimal():
        return value
    raise click.BadParameter(f"{value!r} is neither a whole number nor none.", param=param)


def _share(_ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    """Check a share above 0 and up to 1, or none."""
    if value is None or value == "none":
        return value
    try:
        if 0 < float(value) <= 1:
            return value
    except ValueError:
        pass
    raise click.BadParameter(f"{value!r} is neither a share such as 0.8 nor none.", param=param)


def _length(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    """Convert a length of time, or none."""
    if value is None or value == "none":
        return value
    return f"{options.DURATION.convert(value, param, ctx)} seconds"


def _part(name: str, text: str) -> Callable[[_Command], _Command]:
    return click.option(f"--{name}", metavar="N|none", callback=_amount, help=text)


@click.group()
def limits() -> None:
    """Limits: what a provider allows all workers together. Jobs over a limit wait."""


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
    list_rows(
        dsn,
        lambda operator: operator.limits.list(),
        lambda now, out: columns("LIMIT", now, out),
        empty=_EMPTY,
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
        "trunkline limits set fair:mail/acme --weight 3 --reason 'larger contract'",
        "trunkline limits set openai --tokens-per-minute none",
    ),
)
@click.argument("name", metavar="NAME")
@_part("requests-per-minute", "In any 60 seconds; none: no limit.")
@_part("requests-per-hour", "In any 3600 seconds; none: no limit.")
@_part("tokens-per-minute", "Of the cost of each job; none: no limit.")
@_part("tokens-per-hour", "Of the cost of each job; none: no limit.")
@_part("concurrency", "Running at once; none: no limit.")
@click.option(
    "--backpressure-threshold",
    metavar="SHARE|none",
    callback=_share,
    help="Defer new jobs while more than this share of the minute is in use.",
)
@click.option(
    "--backpressure-delay",
    metavar="LENGTH|none",
    callback=_length,
    help="How long new jobs are deferred, at most 1d.",
)
@_part("depth-limit", "How many jobs may wait for it; none: no limit.")
@click.option(
    "--depth-refuse/--depth-delay",
    "depth_refuses",
    default=None,
    help="Above the depth limit, refuse new jobs (the default) or defer them.",
)
@_part("weight", "Slots for each slot of the other keys of its share group [default: 1].")
@_part("share-cap", "Slots of one key while other keys of its share group wait.")
@options.with_options(options.reason, options.dsn, options.as_json)
def set_(
    *,
    name: str,
    depth_refuses: bool | None,
    reason: str | None,
    dsn: str | None,
    as_json: bool,
    **values: str | None,
) -> None:
    """Create a limit, or change the given parts.

    If the name has keys in braces, each value that payloads have there is limited separately. Set
    quotas with trunkline quotas set. Limits of a share group, such as fair:mail/{tenant}, share
    fairly.
    """
    parts: dict[str, Any] = {
        part: None if value == "none" else _value(part, value)
        for part, value in values.items()
        if value is not None
    }
    if depth_refuses is not None:
        parts["depth_refuses"] = depth_refuses
    if not parts:
        raise click.UsageError("Name a part of the limit, such as --requests-per-minute 60.")
    change(
        lambda operator: operator.limits.set(name, parts, reason=reason),
        lambda created: (
            f"Limit {clean(name)} {'created' if created else 'changed'}."
            " It applies from the next claim."
        ),
        lambda created: {"limit": name, "created": created, **parts},
        dsn=dsn,
        as_json=as_json,
    )


@limits.command(
    epilog=options.examples("trunkline limits show openai", "trunkline limits show openai --json")
)
@click.argument("name", metavar="NAME")
@options.with_options(options.dsn, options.as_json)
def show(*, name: str, dsn: str | None, as_json: bool) -> None:
    """Show a limit with all of its parts, and its keys used lately.

    Also shows pauses that its provider asked for, and how often calls were refused.
    """
    with opened(dsn) as session:
        operator = session.operator
        limit = operator.limits.get(name)
        buckets, now = operator.limits.buckets(name), operator.now()
    if as_json:
        print_json({**limit._asdict(), "keys": [bucket._asdict() for bucket in buckets]})
        return
    out = console()
    put(out, parts_of(limit, buckets, now, out))
    if any(bucket.name != name for bucket in buckets):
        keys = [with_key(limit, bucket) for bucket in buckets]
        click.echo()
        put(out, table(columns("KEY", now, out), keys, out.width))


@limits.command(
    epilog=options.examples("trunkline limits pause openai --reason 'key is being changed'")
)
@click.argument("name", metavar="NAME")
@options.with_options(options.reason, options.dsn, options.as_json)
def pause(*, name: str, reason: str | None, dsn: str | None, as_json: bool) -> None:
    """Start no job that takes from a limit; running jobs continue.

    Calls that running jobs make through ctx.http or ctx.grant are refused until it is resumed.
    """
    change(
        lambda operator: operator.limits.pause(name, reason=reason),
        lambda _: (
            f"Limit {clean(name)} paused. Running jobs continue; new calls through ctx.http and"
            " ctx.grant are refused."
        ),
        lambda _: {"limit": name, "status": "maintenance", "reason": reason},
        dsn=dsn,
        as_json=as_json,
    )


@limits.command(epilog=options.examples("trunkline limits resume openai"))
@click.argument("name", metavar="NAME")
@options.with_options(options.reason, options.dsn, options.as_json)
def resume(*, name: str, reason: str | None, dsn: str | None, as_json: bool) -> None:
    """Start jobs again, also where the provider asked for a pause."""

    def message(lifted: Sequence[str]) -> str:
        more = f" {count(len(lifted), 'pause')} of its provider lifted." if lifted else ""
        return f"Limit {clean(name)} resumed.{more}"

    change(
        lambda operator: operator.limits.resume(name, reason=reason),
        message,
        lambda lifted: {"limit": name, "status": "active", "reason": None, "lifted": lifted},
        dsn=dsn,
        as_json=as_json,
    )


def _value(part: str, text: str) -> int | float | str:
    if part == "backpressure_delay":
        return text
    return float(text) if part == "backpressure_threshold" else int(text)

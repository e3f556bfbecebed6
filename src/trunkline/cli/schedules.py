"""``trunkline schedules``: what is enqueued by the clock."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from trunkline.cli import options

# Imports of the driver and of rich wait until a command runs, so that help is quick.
if TYPE_CHECKING:
    from trunkline.db.call import Call
    from trunkline.model import ScheduleChange

__all__ = ["schedules"]

_name = click.argument("name", metavar="NAME")


@click.group()
def schedules() -> None:
    """What is enqueued by the clock. Tasks with schedule= make theirs by themselves."""


@schedules.command(
    "list", epilog=options.examples("trunkline schedules list", "trunkline schedules list --json")
)
@options.with_options(options.dsn, options.as_json)
def list_(*, dsn: str | None, as_json: bool) -> None:
    """List schedules with when they are due next and what they did last."""
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see above
    from trunkline.cli.output import clean, print_json, relative  # noqa: PLC0415 - see above
    from trunkline.cli.tables import Column, show  # noqa: PLC0415 - see above
    from trunkline.db.calls import views  # noqa: PLC0415 - see above

    with opened(dsn) as session:
        found, now = session.ask(views.schedules()), session.now()
    if as_json:
        print_json(found)
        return

    def due(row: Any) -> str:
        return "paused" if row.paused else relative(row.next_run_at, now)

    show(
        [
            Column("SCHEDULE", lambda row: row.schedule, elastic=True),
            Column("CRON", lambda row: row.cron),
            Column("ZONE", lambda row: row.time_zone, rank=3),
            Column("TASK", lambda row: row.task, rank=1, elastic=True),
            Column("NEXT", due, lambda row: "yellow" if row.paused else ""),
            Column("LAST", lambda row: relative(row.last_run_at, now), rank=4),
            Column(
                "TROUBLE",
                lambda row: clean(row.last_error) if row.last_error else "",
                "red",
                rank=2,
                elastic=True,
            ),
        ],
        found,
        nothing="No schedules; make one with: trunkline schedules set NAME CRON TASK",
    )


@schedules.command(
    "set",
    epilog=options.examples(
        "trunkline schedules set nightly '0 3 * * *' report --time-zone Europe/Paris",
        "trunkline schedules set poll '*/5 * * * *' poll --payload '{\"source\": \"a\"}'",
        "trunkline schedules set hourly @hourly sweep --missed skip",
    ),
)
@_name
@click.argument("cron", metavar="CRON")
@click.argument("task", metavar="TASK")
@click.option("--payload", type=options.PAYLOAD, metavar="JSON", help="The text, @FILE or -.")
@click.option("--time-zone", metavar="NAME", default="UTC", show_default=True)
@click.option("--queue", metavar="NAME", help="Instead of the queue of the task.")
@click.option("--priority", type=click.IntRange(-50, 49), help="The larger one goes first.")
@click.option("--tenant", metavar="NAME")
@click.option(
    "--missed",
    type=click.Choice(["skip", "once", "all"]),
    default="once",
    show_default=True,
    help="What becomes of due times nobody was there for: none, the latest, or every one.",
)
@click.option(
    "--paused/--not-paused",
    default=None,
    help="Enqueue nothing until it is resumed [default: a new one runs, an old one stays].",
)
@options.with_options(options.dsn, options.as_json)
def set_(
    *,
    name: str,
    cron: str,
    task: str,
    payload: dict[str, Any] | None,
    dsn: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Make a schedule, or change all of an existing one.

    CRON is five fields (minute hour day month weekday) in quotes, or @hourly, @daily and so on.
    """
    from trunkline.db.calls import admin  # noqa: PLC0415 - see above

    _change(
        admin.set_schedule(name, cron, task, payload=payload or {}, **given),
        dsn=dsn,
        as_json=as_json,
    )


@schedules.command(epilog=options.examples("trunkline schedules pause nightly"))
@options.with_options(_name, options.dsn, options.as_json)
def pause(*, name: str, dsn: str | None, as_json: bool) -> None:
    """Enqueue nothing of a schedule until it is resumed."""
    from trunkline.db.calls import admin  # noqa: PLC0415 - see above

    _change(admin.pause_schedule(name), dsn=dsn, as_json=as_json)


@schedules.command(epilog=options.examples("trunkline schedules resume nightly"))
@options.with_options(_name, options.dsn, options.as_json)
def resume(*, name: str, dsn: str | None, as_json: bool) -> None:
    """Go on from now; what was due during the pause is not made up for."""
    from trunkline.db.calls import admin  # noqa: PLC0415 - see above

    _change(admin.resume_schedule(name), dsn=dsn, as_json=as_json)


@schedules.command(epilog=options.examples("trunkline schedules remove nightly --yes"))
@options.with_options(_name, options.yes, options.dsn, options.as_json)
def remove(*, name: str, yes: bool, dsn: str | None, as_json: bool) -> None:
    """Remove a schedule; jobs it enqueued stay."""
    from trunkline.cli.actions import confirm  # noqa: PLC0415 - see above
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see above
    from trunkline.cli.output import print_json  # noqa: PLC0415 - see above
    from trunkline.db.calls import admin  # noqa: PLC0415 - see above

    confirm(f"Remove the schedule {name}?", yes=yes)
    with opened(dsn) as session:
        session.ask(admin.remove_schedule(name))
    print_json({"schedule": name, "removed": True}) if as_json else click.echo(f"{name}  removed")


@schedules.command(
    "next",
    epilog=options.examples(
        "trunkline schedules next nightly",
        "trunkline schedules next --cron '*/15 9-17 * * 1-5' --time-zone Europe/Paris --count 3",
    ),
)
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--cron", metavar="CRON", help="An expression to try, instead of a schedule.")
@click.option("--time-zone", metavar="NAME", help="For --cron [default: UTC].")
@click.option("--after", type=options.TIME, metavar="TIME", help="Reckon from then [default: now].")
@click.option("--count", type=click.IntRange(1, 1000), default=5, show_default=True)
@options.with_options(options.dsn, options.as_json)
def next_(
    *,
    name: str | None,
    cron: str | None,
    time_zone: str | None,
    after: datetime | None,
    count: int,
    dsn: str | None,
    as_json: bool,
) -> None:
    """Show when a schedule, or an expression, is due next."""
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see above
    from trunkline.cli.output import moment, print_json  # noqa: PLC0415 - see above
    from trunkline.db.calls import admin, views  # noqa: PLC0415 - see above
    from trunkline.errors import UnknownSchedule  # noqa: PLC0415 - see above

    if (name is None) == (cron is None):
        raise click.UsageError("Name a schedule, or pass --cron.")
    if name is not None and time_zone is not None:
        raise click.UsageError("--time-zone is for --cron; a schedule has its own.")
    with opened(dsn) as session:
        zone = time_zone or "UTC"
        if name is not None:
            known = {row.schedule: row for row in session.ask(views.schedules())}
            if name not in known:
                raise UnknownSchedule(
                    "unknown schedule",
                    detail={"schedule": name, "known": sorted(known)},
                    hint="See those there are with: trunkline schedules list",
                )
            cron, zone = known[name].cron, known[name].time_zone
        due = session.ask(admin.next_due(cron or "", zone, after, count))
        now = session.now()
    if as_json:
        print_json({"cron": cron, "time_zone": zone, "due": due})
        return
    for at in due:
        click.echo(moment(at, now))


def _change(call: Call[ScheduleChange], *, dsn: str | None, as_json: bool) -> None:
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see above
    from trunkline.cli.output import moment, print_json  # noqa: PLC0415 - see above

    with opened(dsn) as session:
        found = session.ask(call)
        now = session.now()
    if as_json:
        print_json(found)
        return
    what = "paused" if found.paused else f"next {moment(found.next_run_at, now)}"
    click.echo(f"{found.schedule}  {'made, ' if found.created else ''}{what}")

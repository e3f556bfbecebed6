"""``trunkline workers``: the processes that run jobs."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from trunkline.cli import options

# Imports of the driver and of rich wait until a command runs, so that help is quick.
if TYPE_CHECKING:
    from trunkline.cli.tables import Column

__all__ = ["workers"]


@click.group()
def workers() -> None:
    """Worker processes: list, drain."""


@workers.command(
    "list",
    epilog=options.examples(
        "trunkline workers list",
        "trunkline workers list --watch",
        "trunkline workers list --all --json",
    ),
)
@click.option("--all", "everyone", is_flag=True, help="Also those that stopped or are gone.")
@options.with_options(options.watch, options.dsn, options.as_json)
def list_(*, everyone: bool, watch: bool, dsn: str | None, as_json: bool) -> None:
    """List worker processes and how many jobs each runs."""
    from trunkline.cli.listing import list_rows  # noqa: PLC0415 - see above
    from trunkline.db.calls import views  # noqa: PLC0415 - see above

    list_rows(
        dsn,
        views.workers(everyone=everyone),
        lambda now, _out: _columns(now),
        nothing="No workers; start one with: trunkline worker APP",
        watch=watch,
        as_json=as_json,
    )


@workers.command(
    epilog=options.examples("trunkline workers drain web-1-4711", "trunkline workers drain --all")
)
@click.argument("names", metavar="[WORKER]...", nargs=-1)
@click.option("--all", "everyone", is_flag=True, help="All that are active now.")
@options.with_options(options.yes, options.dsn, options.as_json)
def drain(
    *, names: tuple[str, ...], everyone: bool, yes: bool, dsn: str | None, as_json: bool
) -> None:
    """Ask workers to finish what they run, claim no more and end."""
    from trunkline.cli.actions import confirm  # noqa: PLC0415 - see above
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see above
    from trunkline.cli.output import clean, count, print_json  # noqa: PLC0415 - see above
    from trunkline.db.calls import admin, views  # noqa: PLC0415 - see above

    if bool(names) == everyone:
        raise click.UsageError("Name workers, or pass --all.")
    with opened(dsn) as session:
        if everyone:
            found = session.ask(views.workers(everyone=False))
            names = tuple(row.worker for row in found if row.state == "active")
            if names:
                confirm(f"Drain {count(len(names), 'worker')}?", yes=yes)
        answers = [
            {"worker": name, "state": session.ask(admin.drain_worker(name))} for name in names
        ]
    if as_json:
        print_json(answers)
        return
    for answer in answers:
        click.echo(f"{clean(answer['worker'])}  {answer['state']}")
    if not answers:
        click.echo("No worker is active", err=True)


def _columns(now: datetime) -> list[Column[Any]]:
    from trunkline.cli.output import relative  # noqa: PLC0415 - see above
    from trunkline.cli.tables import Column  # noqa: PLC0415 - see above

    def state(row: Any) -> str:
        return row.state if row.alive or row.state in {"gone", "stopped"} else "silent"

    def style(row: Any) -> str:
        colours = {"active": "green", "draining": "yellow", "stopped": "dim"}
        return colours.get(state(row), "red")

    return [
        Column("WORKER", lambda row: row.worker, elastic=True),
        Column("STATE", state, style),
        Column("RUNNING", lambda row: row.running, right=True),
        Column("SEEN", lambda row: relative(row.seen_at, now), rank=1),
        Column("STARTED", lambda row: relative(row.started_at, now), rank=2),
        Column("QUEUES", lambda row: ", ".join(row.queues or ["all"]), rank=3, elastic=True),
        Column("HOST", lambda row: row.host, rank=5, elastic=True),
        Column("PID", lambda row: row.pid, right=True, rank=4),
        Column("VERSION", lambda row: row.version, rank=6),
    ]

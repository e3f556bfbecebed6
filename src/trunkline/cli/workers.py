"""``trunkline workers``: the processes that run jobs."""

from __future__ import annotations

from datetime import datetime

import click

from trunkline.cli import options
from trunkline.cli.actions import confirm
from trunkline.cli.connection import opened
from trunkline.cli.listing import list_rows
from trunkline.cli.output import clean, count, print_json, relative
from trunkline.cli.tables import Column
from trunkline.model import WorkerStatus

__all__ = ["workers"]

_STYLES = {"active": "green", "draining": "yellow", "stopped": "dim"}
_DRAINED = {
    "draining": "draining. It finishes its running jobs and claims no more.",
    "stopped": "had stopped before.",
    "gone": "had died before. Its jobs are given to other workers.",
}


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
@click.option("--all", "everyone", is_flag=True, help="Also workers that stopped or died.")
@options.with_options(options.watch, options.dsn, options.as_json)
def list_(*, everyone: bool, watch: bool, dsn: str | None, as_json: bool) -> None:
    """List worker processes and how many jobs each runs."""
    list_rows(
        dsn,
        lambda operator: operator.workers.list(everyone=everyone),
        lambda now, _out: _columns(now),
        empty="No workers. Start one with: trunkline worker APP",
        watch=watch,
        as_json=as_json,
    )


@workers.command(
    epilog=options.examples(
        "trunkline workers drain web-1-4711 --reason 'host is replaced'",
        "trunkline workers drain --all",
    )
)
@click.argument("names", metavar="[WORKER]...", nargs=-1)
@click.option("--all", "everyone", is_flag=True, help="All workers that are active now.")
@options.with_options(options.yes, options.reason, options.dsn, options.as_json)
def drain(
    *,
    names: tuple[str, ...],
    everyone: bool,
    yes: bool,
    reason: str | None,
    dsn: str | None,
    as_json: bool,
) -> None:
    """Ask workers to finish their running jobs, claim no more and exit."""
    if bool(names) == everyone:
        raise click.UsageError("Name workers, or pass --all.")
    states: list[dict[str, str]] = []
    with opened(dsn) as session:
        if everyone:
            active = [row for row in session.operator.workers.list() if row.state == "active"]
            names = tuple(row.worker for row in active)
            if names:
                confirm(f"Drain {count(len(names), 'worker')}?", yes=yes)
        for name in names:
            state = session.operator.workers.drain(name, reason=reason)
            states.append({"worker": name, "state": state})
            if not as_json:
                click.echo(f"Worker {clean(name)} {_DRAINED.get(state, f'is {state}.')}")
    if as_json:
        print_json(states)
    elif not states:
        click.echo("No worker is active.", err=True)


def _columns(now: datetime) -> list[Column[WorkerStatus]]:
    def state(row: WorkerStatus) -> str:
        return row.state if row.alive or row.state in {"gone", "stopped"} else "silent"

    return [
        Column("WORKER", lambda row: row.worker, elastic=True, least=24),
        Column("STATE", state, lambda row: _STYLES.get(state(row), "red")),
        Column("RUNNING", lambda row: row.running, right=True),
        Column("SEEN", lambda row: relative(row.seen_at, now), rank=1),
        Column("STARTED", lambda row: relative(row.started_at, now), rank=2),
        Column(
            "QUEUES",
            lambda row: ", ".join(row.queues or ["all"]),
            rank=3,
            elastic=True,
            least=14,
        ),
        Column("HOST", lambda row: row.host, rank=5, elastic=True, least=16),
        Column("PID", lambda row: row.pid, right=True, rank=4),
        Column("VERSION", lambda row: row.version, rank=6),
    ]

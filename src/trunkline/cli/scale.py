"""``trunkline scale``: how many workers are wanted, as a table, as JSON or through a command."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import click

from trunkline.cli import options
from trunkline.cli.hook import Hook
from trunkline.cli.listing import list_rows
from trunkline.cli.output import capped
from trunkline.cli.tables import Column
from trunkline.model import WorkerTarget
from trunkline.operate import SyncOperator

__all__ = ["scale"]


@click.command(
    epilog=options.examples(
        "trunkline scale",
        "trunkline scale --json | jq '.[] | {queue, wanted}'",
        "trunkline scale --hook ./resize.sh",
    )
)
@click.option(
    "--hook",
    metavar="COMMAND",
    help="Run the command, without a shell, for each number that changes. Implies --watch.",
)
@click.option(
    "--hook-timeout",
    type=click.FloatRange(0.1, 3600),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="Stop the command after this time.",
)
@options.with_options(options.watch, options.dsn, options.as_json)
def scale(
    *, hook: str | None, hook_timeout: float, watch: bool, dsn: str | None, as_json: bool
) -> None:
    """Show how many worker processes are wanted for each queue and set of tasks.

    Jobs that a limit keeps from starting want no worker. The number rises at once and falls after a
    while: see the settings scale_*. The hook finds the numbers in its environment: SCALE_QUEUE,
    SCALE_TASKS, SCALE_WANTED, SCALE_BEFORE, SCALE_WORKERS, SCALE_STARTABLE and SCALE_RUNNING.
    """
    runner = None if hook is None else Hook(hook, hook_timeout, partial(click.echo, err=True))

    def ask(operator: SyncOperator) -> Sequence[WorkerTarget]:
        targets = operator.workers.wanted()
        if runner is not None:
            runner.see(targets)
        return targets

    list_rows(
        dsn,
        ask,
        lambda _now, _out: _columns(),
        empty="No workers are wanted: none are running, and no job can start.",
        watch=watch or runner is not None,
        as_json=as_json,
    )


def _columns() -> list[Column[WorkerTarget]]:
    return [
        Column("QUEUE", lambda row: row.queue, elastic=True),
        Column("TASKS", lambda row: ", ".join(row.tasks or ["all"]), elastic=True, rank=2),
        Column("WANTED", lambda row: f"{row.wanted:,}", "cyan", right=True),
        Column("WORKERS", lambda row: f"{row.workers:,}", right=True),
        Column(
            "STARTABLE",
            lambda row: capped(row.startable, row.counted_up_to),
            right=True,
            rank=1,
        ),
        Column("RUNNING", lambda row: f"{row.running:,}", right=True, rank=3),
    ]

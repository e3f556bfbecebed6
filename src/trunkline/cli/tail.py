"""``trunkline jobs tail``: what happens to jobs, line by line."""

from __future__ import annotations

import click

from trunkline.cli import options
from trunkline.cli.connection import opened
from trunkline.cli.lines import printer

__all__ = ["tail"]


@click.command(
    epilog=options.examples(
        "trunkline jobs tail",
        "trunkline jobs tail --queue mail --state dead",
        "trunkline jobs tail --lines 100 --no-follow",
        "trunkline jobs tail --json | jq 'select(.event == \"failed\") | .error'",
    )
)
@click.option("--queue", metavar="NAME", help="Only this queue.")
@click.option("--task", metavar="NAME", help="Only this task.")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(options.STATES),
    help="Only what brought a job into this state. May be repeated.",
)
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(0, 10_000),
    default=10,
    show_default=True,
    help="Lines of the last day that come first.",
)
@click.option("--follow/--no-follow", default=True, help="Go on after these lines, or stop.")
@options.with_options(options.dsn, options.as_json)
def tail(
    *,
    queue: str | None,
    task: str | None,
    states: tuple[str, ...],
    lines: int,
    follow: bool,
    dsn: str | None,
    as_json: bool,
) -> None:
    """Follow what happens to jobs, like a log.

    Ctrl-C ends it with code 0. A job has a line when it is enqueued, when an attempt starts, and
    when the attempt ends. A line of a transaction that committed late comes late, with its own
    time. An attempt that failed or was deferred within a second may have a line for its end only.
    """
    write = printer(as_json=as_json)
    with opened(dsn) as session:
        try:
            if follow:
                for line in session.watcher.activity.follow(
                    lines, task=task, queue=queue, states=states
                ):
                    write(line)
                return
            for line in session.operator.activity.recent(
                lines, task=task, queue=queue, states=states
            ):
                write(line)
        except KeyboardInterrupt:
            # This is how a user ends it.
            return

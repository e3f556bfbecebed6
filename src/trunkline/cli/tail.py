"""``trunkline jobs tail``: what happens to jobs, line by line."""

from __future__ import annotations

import click

from trunkline.cli import options

__all__ = ["tail"]


@click.command(
    epilog=options.examples(
        "trunkline jobs tail",
        "trunkline jobs tail --queue mail --state dead",
        "trunkline jobs tail --lines 100 --no-follow",
        "trunkline jobs tail --json | jq 'select(.event == \"failed\") | .error'",
    )
)
@click.option("--queue", metavar="NAME", help="Only in this queue.")
@click.option("--task", metavar="NAME", help="Only of this task.")
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
    help="How much of the last day comes first.",
)
@click.option("--follow/--no-follow", default=True, help="Go on, which is the default, or stop.")
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

    Ctrl-C ends it with code 0. Each line is told once: when a job is enqueued, when an attempt
    starts and how it ends. What a transaction committed late comes late, with its own time. The
    start of an attempt that failed or was put off within a second is not told, its end is.
    """
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see main.py
    from trunkline.cli.following import Follower  # noqa: PLC0415 - see main.py
    from trunkline.cli.lines import printer  # noqa: PLC0415 - see main.py

    write = printer(as_json=as_json)
    with opened(dsn) as session:
        follower = Follower(session, task=task, queue=queue, states=frozenset(states))
        try:
            for line in follower.history(lines):
                write(line)
            while follow:
                for line in follower.news():
                    write(line)
                follower.rest()
        except KeyboardInterrupt:
            # The way to end it, so no failure.
            return

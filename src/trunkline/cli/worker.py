"""``trunkline worker``: run the jobs of an application."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from trunkline.cli import options
from trunkline.worker.entry import WorkerOptions, run_worker

__all__ = ["worker", "worker_options", "worker_settings"]

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--queues",
        multiple=True,
        metavar="NAMES",
        help="Only these queues, in this order: a,b; may be repeated [default: all].",
    ),
    click.option(
        "--tasks",
        multiple=True,
        metavar="NAMES",
        help="Only these tasks of the application [default: all].",
    ),
    click.option(
        "--concurrency",
        type=click.IntRange(1, 10_000),
        default=10,
        show_default=True,
        metavar="N",
        help="Jobs at once in each process.",
    ),
    click.option(
        "--processes",
        type=click.IntRange(1, 256),
        default=1,
        show_default=True,
        metavar="N",
        help="Worker processes under one supervisor.",
    ),
    click.option(
        "--threads",
        type=click.IntRange(1, 10_000),
        metavar="N",
        help="Threads for handlers that are plain functions [default: as --concurrency].",
    ),
    click.option(
        "--memory-limit",
        type=options.SIZE,
        metavar="SIZE",
        help="A process that uses more, such as 512MB, finishes its jobs and is replaced.",
    ),
    click.option(
        "--grace",
        type=options.DURATION,
        default="30s",
        show_default=True,
        metavar="TIME",
        help="Time for running jobs to end after SIGTERM, SIGHUP or Ctrl-C.",
    ),
    click.option(
        "--log",
        "log_format",
        type=click.Choice(["console", "json"]),
        default="console",
        show_default=True,
        help="Log lines for people or for programs, on standard error.",
    ),
    click.option(
        "--log-level",
        type=click.Choice(["debug", "info", "warning", "error"]),
        default="info",
        show_default=True,
    ),
    click.option(
        "--name", metavar="TEXT", help="Start of the worker's id [default: the host name]."
    ),
    options.dsn,
    click.option(
        "--listen-dsn",
        metavar="URI",
        help="A direct connection for LISTEN, if --dsn leads through a pooler.",
    ),
)


def worker_options(command: Command) -> Command:
    """Add the options of workers, which `worker` and `up` share."""
    decorated: Command = options.with_options(*_OPTIONS)(command)
    return decorated


def worker_settings(
    app_path: str, *, queues: tuple[str, ...], tasks: tuple[str, ...], **given: Any
) -> WorkerOptions:
    """Return the values of the command line as a worker takes them."""
    return WorkerOptions(
        app_path=app_path, queues=options.split(queues), tasks=options.split(tasks), **given
    )


@click.command(
    epilog=options.examples(
        "trunkline worker shop.jobs:app",
        "trunkline worker shop.jobs:app --queues mail,default --concurrency 50",
        "trunkline worker shop.jobs:app --processes 4 --memory-limit 512MB --log json",
    )
)
@click.argument("app", metavar="APP")
@worker_options
@click.pass_context
def worker(ctx: click.Context, /, *, app: str, **given: Any) -> None:
    """Run the jobs of an application until SIGTERM, SIGHUP or Ctrl-C.

    APP is module:variable, for example shop.jobs:app; the module may be in the current folder.
    After the first signal, running jobs have --grace to end; a second signal ends that time. Jobs
    that have not ended are handed back, and another worker runs them.
    """
    ctx.exit(run_worker(worker_settings(app, **given)))

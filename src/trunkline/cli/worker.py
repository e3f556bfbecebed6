"""``trunkline worker``: run the jobs of an application."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from trunkline.cli import options

# Imports of the driver wait until a command runs, so that help is quick.
if TYPE_CHECKING:
    from trunkline.worker.entry import WorkerOptions

__all__ = ["wished", "worker", "worker_options"]

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
        help="A process that takes more, such as 512MB, ends its jobs and is replaced.",
    ),
    click.option(
        "--grace",
        type=options.DURATION,
        default="30s",
        show_default=True,
        metavar="TIME",
        help="What running jobs get to end after SIGTERM, SIGHUP or Ctrl-C.",
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
    click.option("--name", metavar="TEXT", help="Begins the worker's id [default: the host's]."),
    options.dsn,
    click.option(
        "--listen-dsn",
        metavar="URI",
        help="A direct connection for LISTEN, if --dsn leads through a pooler.",
    ),
)


def worker_options(command: Command) -> Command:
    """All that says how workers run; `worker` and `up` share it."""
    decorated: Command = options.with_options(*_OPTIONS)(command)
    return decorated


def wished(
    app_path: str, *, queues: tuple[str, ...], tasks: tuple[str, ...], **given: Any
) -> WorkerOptions:
    """The options as the worker takes them."""
    from trunkline.worker.entry import WorkerOptions  # noqa: PLC0415 - see above

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

    APP is module:variable, for example shop.jobs:app; the module is looked for in the current
    folder too. A first signal lets running jobs end, within --grace; a second one does not. Jobs
    that could not end are handed back and run elsewhere.
    """
    from trunkline.worker.entry import run_worker  # noqa: PLC0415 - see above

    ctx.exit(run_worker(wished(app, **given)))

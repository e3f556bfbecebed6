"""Chancy's application, run in its own environment: its job, and the settings of its queue."""

import asyncio
import logging

from chancy import Chancy, Job, Queue  # type: ignore[import-not-found, unused-ignore]
from chancy.plugins.leadership import (  # type: ignore[import-not-found, unused-ignore]
    Leadership,
)
from chancy.plugins.pruner import Pruner  # type: ignore[import-not-found, unused-ignore]
from chancy.plugins.recovery import Recovery  # type: ignore[import-not-found, unused-ignore]

from bench.apps.slate import WORK_SECONDS, open_slate

__all__ = ["job", "noop", "open_app", "queue"]


async def noop(*, number: int) -> None:
    """Record that it ran."""
    open_slate().note(number)
    if WORK_SECONDS:
        await asyncio.sleep(WORK_SECONDS)


def open_app() -> Chancy:
    """Connect by the PG* variables, with what a queue needs and no log line for every job."""
    log = logging.getLogger("chancy")
    log.setLevel(logging.WARNING)
    return Chancy(
        "",
        log=log,
        min_connection_pool_size=10,
        # Its metrics and workflows, also on by default, take half of the worker's time.
        plugins=[Leadership(), Pruner(), Recovery()],
        no_default_plugins=True,
    )


def queue() -> Queue:
    """Runs jobs in the worker's process; the worker fetches more as soon as one has ended."""
    return Queue("default", concurrency=500, executor=Chancy.Executor.Async, eager_polling=True)


def job(number: int) -> Job:
    """Return the job with this number."""
    return Job(func="bench.rivals.chancy_app.noop", kwargs={"number": number})

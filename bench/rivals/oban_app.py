"""Oban's application, run in its own environment: its job, and its pool of connections."""

import asyncio

from oban import Oban, job  # type: ignore[import-not-found, unused-ignore]
from psycopg_pool import AsyncConnectionPool

from bench.apps.slate import WORK_SECONDS, open_slate
from bench.rivals.loops import database_url

__all__ = ["QUEUE", "noop", "open_pool"]

QUEUE = "default"


@job(queue=QUEUE)  # type: ignore[untyped-decorator, unused-ignore]
async def noop(number: int) -> None:
    """Record that it ran."""
    open_slate().note(number)
    if WORK_SECONDS:
        await asyncio.sleep(WORK_SECONDS)


async def open_pool() -> AsyncConnectionPool:
    """Connect by the PG* variables."""
    pool: AsyncConnectionPool = await Oban.create_pool(database_url(), min_size=10, max_size=20)
    return pool

"""PGMQ's client, run in its own environment: what its loop and its producer have in common."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg  # type: ignore[import-untyped, unused-ignore]
from pgmq.async_queue import PGMQueue  # type: ignore[import-not-found, unused-ignore]

__all__ = ["QUEUE", "open_client"]

QUEUE = "jobs"


async def _leave(connection: asyncpg.Connection) -> None:
    """Skip what asyncpg cleans up between uses: nothing here leaves anything behind."""


@asynccontextmanager
async def open_client(connections: int) -> AsyncIterator[PGMQueue]:
    """Connect by PGHOST and its like.

    Calls are given a connection of ``client.pool``: without one, the client puts a transaction of
    its own around the single statement, which makes four round trips of one.
    """
    pool = asyncpg.create_pool(min_size=connections, max_size=connections, reset=_leave)
    async with pool:
        client = PGMQueue(pool=pool, init_extension=False)
        await client.init()
        yield client

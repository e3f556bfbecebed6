"""PGMQ's client, run in its own environment, shared by its loop and its producer."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg  # type: ignore[import-untyped, unused-ignore]
from pgmq.async_queue import PGMQueue  # type: ignore[import-not-found, unused-ignore]

__all__ = ["QUEUE", "open_client"]

QUEUE = "jobs"


async def _leave(connection: asyncpg.Connection) -> None:
    """Skip asyncpg's reset between uses: no session state has to be cleared here."""


@asynccontextmanager
async def open_client(connections: int) -> AsyncIterator[PGMQueue]:
    """Connect by the PG* variables.

    Pass a connection of ``client.pool`` to every call. Without one, the client wraps the single
    statement in a transaction, which makes four round trips of one.
    """
    pool = asyncpg.create_pool(min_size=connections, max_size=connections, reset=_leave)
    async with pool:
        client = PGMQueue(pool=pool, init_extension=False)
        await client.init()
        yield client

"""PGMQ's producer, run in its own environment; with 'install' it only creates schema and queue."""

import sys
from collections.abc import Sequence

import uvloop
from pgmq import install_pgmq_from_sql  # type: ignore[import-not-found, unused-ignore]
from pgmq.async_queue import PGMQueue  # type: ignore[import-not-found, unused-ignore]

from bench.apps.producing import serve
from bench.rivals.loops import database_url
from bench.rivals.pgmq_app import QUEUE, open_client


class _Producer:
    def __init__(self, client: PGMQueue) -> None:
        self._client = client

    async def one(self, number: int) -> None:
        async with self._client.pool.acquire() as connection:
            await self._client.send(QUEUE, {"number": number}, conn=connection)

    async def many(self, numbers: Sequence[int]) -> None:
        messages = [{"number": number} for number in numbers]
        async with self._client.pool.acquire() as connection:
            await self._client.send_batch(QUEUE, messages, conn=connection)


async def _main(*, install: bool) -> None:
    async with open_client(10) as client:
        if install:
            await client.create_queue(QUEUE)
        else:
            await serve(_Producer(client))


if __name__ == "__main__":
    installing = "install" in sys.argv[1:]
    if installing:
        install_pgmq_from_sql(dsn=database_url())
    uvloop.run(_main(install=installing))

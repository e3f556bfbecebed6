"""Awa's producer, run in its own environment; with 'install' it only creates the tables."""

import sys
from collections.abc import Sequence

import uvloop
from awa import AsyncClient  # type: ignore[import-not-found, unused-ignore]

from bench.apps.producing import serve
from bench.rivals.awa_app import QUEUE, Noop, open_client


class _Producer:
    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def one(self, number: int) -> None:
        await self._client.insert(Noop(number), **QUEUE.route_by_index(number))

    async def many(self, numbers: Sequence[int]) -> None:
        await self._client.enqueue_many_copy(
            [Noop(number) for number in numbers],
            opts=[QUEUE.route_by_index(number) for number in numbers],
        )


async def _main(*, install: bool) -> None:
    async with open_client() as client:
        if install:
            await client.migrate()
            await client.install_queue_storage()
        else:
            await serve(_Producer(client))


if __name__ == "__main__":
    uvloop.run(_main(install="install" in sys.argv[1:]))

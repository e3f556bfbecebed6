"""Chancy's producer, run in its own environment; with 'install' it only creates the tables."""

import sys
from collections.abc import Sequence

import uvloop
from chancy import Chancy  # type: ignore[import-not-found, unused-ignore]

from bench.apps.producing import serve
from bench.rivals.chancy_app import job, open_app, queue


class _Producer:
    def __init__(self, chancy: Chancy) -> None:
        self._chancy = chancy

    async def one(self, number: int) -> None:
        await self._chancy.push(job(number))

    async def many(self, numbers: Sequence[int]) -> None:
        async for _ in self._chancy.push_many([job(number) for number in numbers]):
            pass


async def _main(*, install: bool) -> None:
    async with open_app() as chancy:
        if install:
            await chancy.migrate()
            await chancy.declare(queue())
        else:
            await serve(_Producer(chancy))


if __name__ == "__main__":
    uvloop.run(_main(install="install" in sys.argv[1:]))

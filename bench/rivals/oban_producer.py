"""Oban's producer, run in its own environment; with 'install' it only creates the tables."""

import sys
from collections.abc import Sequence

import uvloop
from oban import Oban  # type: ignore[import-not-found, unused-ignore]
from oban.schema import install  # type: ignore[import-not-found, unused-ignore]

from bench.apps.producing import serve
from bench.rivals.oban_app import noop, open_pool


class _Producer:
    def __init__(self, oban: Oban) -> None:
        self._oban = oban

    async def one(self, number: int) -> None:
        await self._oban.enqueue(noop.new(number))

    async def many(self, numbers: Sequence[int]) -> None:
        await self._oban.enqueue_many([noop.new(number) for number in numbers])


async def _main(*, installing: bool) -> None:
    async with await open_pool() as pool:
        if installing:
            await install(pool)
        else:
            await serve(_Producer(Oban(pool=pool)))


if __name__ == "__main__":
    uvloop.run(_main(installing="install" in sys.argv[1:]))

"""Procrastinate's producer, run in its own environment; 'install' only creates the tables."""

import sys
from collections.abc import Sequence

import uvloop

from bench.apps.producing import serve
from bench.rivals.procrastinate_app import app, noop


class _Producer:
    async def one(self, number: int) -> None:
        await noop.defer_async(number=number)

    async def many(self, numbers: Sequence[int]) -> None:
        await noop.batch_defer_async(*({"number": number} for number in numbers))


async def _main(*, install: bool) -> None:
    async with app.open_async():
        if install:
            await app.schema_manager.apply_schema_async()
        else:
            await serve(_Producer())


if __name__ == "__main__":
    uvloop.run(_main(install="install" in sys.argv[1:]))

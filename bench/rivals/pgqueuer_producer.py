"""PgQueuer's producer, run in its own environment; with 'install' it only makes the tables."""

import sys
from collections.abc import Sequence

import asyncpg  # type: ignore[import-untyped, unused-ignore]
import uvloop
from pgqueuer.db import AsyncpgDriver  # type: ignore[import-not-found, unused-ignore]
from pgqueuer.queries import Queries  # type: ignore[import-not-found, unused-ignore]

from bench.apps.producing import serve


class _Producer:
    def __init__(self, queries: Queries) -> None:
        self._queries = queries

    async def one(self, number: int) -> None:
        await self._queries.enqueue("noop", str(number).encode())

    async def many(self, numbers: Sequence[int]) -> None:
        payloads = [str(number).encode() for number in numbers]
        await self._queries.enqueue(["noop"] * len(payloads), payloads, [0] * len(payloads))


async def _main(*, install: bool) -> None:
    queries = Queries(AsyncpgDriver(await asyncpg.connect()))
    if install:
        # Durable is its default; the settings for autovacuum are those its guide asks for.
        await queries.install()
        await queries.optimize_autovacuum()
    else:
        await serve(_Producer(queries))


if __name__ == "__main__":
    uvloop.run(_main(install="install" in sys.argv[1:]))

"""PgQueuer's producer, run in its own environment; with 'install' it only creates the tables."""

import sys
from collections.abc import Sequence

import asyncpg  # type: ignore[import-untyped, unused-ignore]
import uvloop
from pgqueuer.db import AsyncpgDriver  # type: ignore[import-not-found, unused-ignore]
from pgqueuer.queries import Queries  # type: ignore[import-not-found, unused-ignore]

from bench.apps.producing import serve

_CONNECTIONS = 10


class _Producer:
    """A connection for each concurrent call: its pool would add a round trip to each."""

    def __init__(self, free: list[Queries]) -> None:
        self._free = free

    async def one(self, number: int) -> None:
        queries = self._free.pop()
        await queries.enqueue("noop", str(number).encode())
        self._free.append(queries)

    async def many(self, numbers: Sequence[int]) -> None:
        payloads = [str(number).encode() for number in numbers]
        await self._free[-1].enqueue(["noop"] * len(payloads), payloads, [0] * len(payloads))


async def _main(*, install: bool) -> None:
    if install:
        # Durable is its default; the settings for autovacuum are those of its guide.
        queries = await _connect()
        await queries.install()
        await queries.optimize_autovacuum()
    else:
        await serve(_Producer([await _connect() for _ in range(_CONNECTIONS)]))


async def _connect() -> Queries:
    return Queries(AsyncpgDriver(await asyncpg.connect()))


if __name__ == "__main__":
    uvloop.run(_main(install="install" in sys.argv[1:]))

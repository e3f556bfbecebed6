"""Our producer, with the client that users have."""

import asyncio
from collections.abc import Sequence

from bench.apps.noop import app, noop
from bench.apps.producing import serve

__all__: list[str] = []


class _Producer:
    async def one(self, number: int) -> None:
        await noop.enqueue(number=number)

    async def many(self, numbers: Sequence[int]) -> None:
        await noop.enqueue_many([noop.request(number=number) for number in numbers])


async def _main() -> None:
    async with app:
        await serve(_Producer())


if __name__ == "__main__":
    asyncio.run(_main())

"""Our producer, with the client that users have."""

from collections.abc import Sequence

import uvloop

from bench.apps.noop import KEYS, app, keyed, noop
from bench.apps.producing import serve

__all__: list[str] = []


class _Producer:
    async def one(self, number: int) -> None:
        await noop.enqueue(number=number)

    async def many(self, numbers: Sequence[int]) -> None:
        await noop.enqueue_many([noop.request(number=number) for number in numbers])


class _KeyedProducer:
    async def one(self, number: int) -> None:
        await keyed.enqueue(number=number, key=str(number % KEYS))

    async def many(self, numbers: Sequence[int]) -> None:
        await keyed.enqueue_many(
            [keyed.request(number=number, key=str(number % KEYS)) for number in numbers]
        )


async def _main() -> None:
    async with app:
        await serve(_KeyedProducer() if KEYS else _Producer())


if __name__ == "__main__":
    # The rival's producer uses the same loop, and `trunkline[uvloop]` installs it.
    uvloop.run(_main())

"""Oban's worker, run in its own environment."""

import uvloop
from oban import Oban  # type: ignore[import-not-found, unused-ignore]

from bench.rivals.loops import until_stopped
from bench.rivals.oban_app import QUEUE, open_pool


async def _main() -> None:
    async with await open_pool() as pool, Oban(pool=pool, queues={QUEUE: 500}):
        await until_stopped()


if __name__ == "__main__":
    uvloop.run(_main())

"""PgQueuer's worker, run in its own environment: batch size, then 'connection' or 'pool'."""

import asyncio
import signal
import sys
from typing import Any

import asyncpg  # type: ignore[import-untyped, unused-ignore]
import uvloop
from pgqueuer import PgQueuer  # type: ignore[import-not-found, unused-ignore]
from pgqueuer.db import (  # type: ignore[import-not-found, unused-ignore]
    AsyncpgDriver,
    AsyncpgPoolDriver,
)

from bench.apps.slate import WORK_SECONDS, open_slate


async def noop(job: Any) -> None:
    open_slate().note(int(job.payload))
    if WORK_SECONDS:
        await asyncio.sleep(WORK_SECONDS)


async def _main(batch: int, driver: str) -> None:
    # The PG* variables name the database.
    if driver == "pool":
        manager = PgQueuer(AsyncpgPoolDriver(await asyncpg.create_pool(min_size=5, max_size=20)))
    else:
        manager = PgQueuer(AsyncpgDriver(await asyncpg.connect()))
    manager.entrypoint("noop")(noop)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, manager.shutdown.set)
    await manager.run(batch_size=batch)


if __name__ == "__main__":
    uvloop.run(_main(int(sys.argv[1]), sys.argv[2]))

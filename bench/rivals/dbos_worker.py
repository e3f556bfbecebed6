"""DBOS's worker, run in its own environment; with 'install' it only makes the tables."""

import asyncio
import os
import sys
import time

from dbos import DBOS, DBOSConfig  # type: ignore[import-not-found, unused-ignore]

from bench.apps.slate import WORK_SECONDS, open_slate
from bench.rivals.dbos_queue import QUEUE, WORKFLOW
from bench.rivals.loops import database_url, until_stopped

POOL = int(os.environ.get("T_POOL", "20"))
CONC = int(os.environ.get("T_CONC", "1000"))
POLL = float(os.environ.get("T_POLL", "0.01"))
THREADS = int(os.environ.get("T_THREADS", "64"))


def _noop(number: int) -> None:
    open_slate().note(number)
    if WORK_SECONDS:
        time.sleep(WORK_SECONDS)


async def _anoop(number: int) -> None:
    open_slate().note(number)
    if WORK_SECONDS:
        await asyncio.sleep(WORK_SECONDS)


def main() -> None:
    config: DBOSConfig = {
        "name": "bench",
        "system_database_url": database_url(),
        "application_version": "bench",
        "executor_id": f"worker-{os.getpid()}",
        "sys_db_pool_size": POOL,
        "max_executor_threads": THREADS,
        "log_level": "WARNING",
    }
    DBOS(config=config)
    DBOS.workflow(name=WORKFLOW)(_anoop if os.environ.get("T_ASYNC") else _noop)
    DBOS.launch()
    DBOS.register_queue(
        QUEUE, worker_concurrency=CONC, polling_interval_sec=POLL, on_conflict="always_update"
    )
    if "install" not in sys.argv[1:]:
        asyncio.run(until_stopped())
    DBOS.destroy()


if __name__ == "__main__":
    main()

"""DBOS's worker, run in its own environment; with 'install' it only creates tables and queue."""

import asyncio
import os
import sys
import time

from dbos import DBOS  # type: ignore[import-not-found, unused-ignore]

from bench.apps.slate import WORK_SECONDS, open_slate
from bench.rivals.dbos_queue import QUEUE, WORKFLOW
from bench.rivals.loops import database_url, until_stopped


def _noop(number: int) -> None:
    open_slate().note(number)
    if WORK_SECONDS:
        time.sleep(WORK_SECONDS)


def _main(*, install: bool) -> None:
    DBOS(
        config={
            "name": "bench",
            "system_database_url": database_url(),
            "sys_db_pool_size": 20,
            "max_executor_threads": 64,
            "application_version": "bench",
            # DBOS distinguishes its processes by this id.
            "executor_id": f"worker-{os.getpid()}",
            "log_level": "WARNING",
        }
    )
    DBOS.workflow(name=WORKFLOW)(_noop)
    DBOS.launch()
    if install:
        DBOS.register_queue(QUEUE, worker_concurrency=1_000, polling_interval_sec=0.01)
    else:
        asyncio.run(until_stopped())
    DBOS.destroy()


if __name__ == "__main__":
    _main(install="install" in sys.argv[1:])

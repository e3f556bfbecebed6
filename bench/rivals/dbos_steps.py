"""Workflows of DBOS with steps, run in its own environment: WORKFLOWS STEPS.

It prints the seconds from the first start of a workflow to the recorded end of the last one. All
are enqueued before the queue is registered, which starts its polls. The settings are those of its
worker in the contest. Workflows are asynchronous, as our handlers are.
"""

import asyncio
import json
import os
import sys
import time

import sqlalchemy as sa  # type: ignore[import-not-found, unused-ignore]
from dbos import DBOS, DBOSClient  # type: ignore[import-not-found, unused-ignore]

from bench.rivals.loops import database_url

_POLL = 0.01
_started: list[float] = []


async def _nothing(number: int) -> int:
    return number


async def _stepped(steps: int) -> int:
    _started.append(time.perf_counter())
    for number in range(steps):
        await nothing(number)
    return steps


nothing = DBOS.step(name="nothing")(_nothing)
stepped = DBOS.workflow(name="stepped")(_stepped)


async def _listen(queue: str) -> None:
    await DBOS.register_queue_async(queue, worker_concurrency=1_000, polling_interval_sec=_POLL)


def _enqueue(queue: str, workflows: int, steps: int) -> list[str]:
    """Enqueue in one transaction, and return the ids."""
    engine = sa.create_engine(database_url("postgresql+psycopg"))
    client = DBOSClient(system_database_engine=engine)
    options = {"workflow_name": "stepped", "queue_name": queue}
    with engine.begin() as connection:
        handles = [
            client.enqueue_in_transaction(connection, options, steps) for _ in range(workflows)
        ]
    engine.dispose()
    return [handle.workflow_id for handle in handles]


async def _until_ended(workflows: list[str]) -> None:
    for workflow in workflows:
        handle = await DBOS.retrieve_workflow_async(workflow)
        await handle.get_result(polling_interval_sec=_POLL)


async def _main(workflows: int, steps: int) -> None:
    # The first one warms up: imports, connections.
    warm_up = _enqueue("warm_up", 1, 3)
    await _listen("warm_up")
    await _until_ended(warm_up)
    _started.clear()
    backlog = _enqueue("steps", workflows, steps)
    await _listen("steps")
    await _until_ended(backlog)
    print(json.dumps({"seconds": time.perf_counter() - _started[0]}), flush=True)


if __name__ == "__main__":
    DBOS(
        config={
            "name": "bench",
            "system_database_url": database_url(),
            "sys_db_pool_size": 20,
            "max_executor_threads": 64,
            "application_version": "bench",
            "executor_id": f"worker-{os.getpid()}",
            "log_level": "WARNING",
        }
    )
    DBOS.launch()
    asyncio.run(_main(int(sys.argv[1]), int(sys.argv[2])))
    DBOS.destroy()

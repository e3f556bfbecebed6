"""Handlers with recorded steps, and a worker in this process that runs them to the end.

``python -m bench.apps.step_jobs JOBS STEPS CONCURRENCY`` prints the seconds from the first start of
a handler to the recorded end of the last job.
"""

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import AsyncIterator

from trunkline import Context, Trunkline
from trunkline.worker.options import WorkerOptions
from trunkline.worker.worker import Worker

__all__ = ["app"]

app = Trunkline()
_started: list[float] = []


async def _nothing(number: int) -> int:
    return number


@app.task
async def stepped(ctx: Context, steps: int) -> int:
    """Record so many steps, one after the other."""
    _started.append(time.perf_counter())
    for number in range(steps):
        await ctx.step("nothing", _nothing, number)
    return steps


async def _main(jobs: int, steps: int, concurrency: int) -> None:
    # The first job warms up: imports, connections, prepared statements.
    await app.enqueue_many([stepped.request(steps=3)])
    async with _working("default", concurrency):
        await _until_ended("default")
        _started.clear()
        # No worker serves this queue until all jobs are in it.
        later = stepped.options(queue="backlog")
        await app.enqueue_many([later.request(steps=steps) for _ in range(jobs)])
        async with _working("backlog", concurrency):
            await _until_ended("backlog")
            print(json.dumps({"seconds": time.perf_counter() - _started[0]}))
    await app.close()


@contextlib.asynccontextmanager
async def _working(queue: str, concurrency: int) -> AsyncIterator[None]:
    worker = Worker(app, WorkerOptions(queues=(queue,), concurrency=concurrency))
    running = asyncio.create_task(worker.run())
    await worker.ready()
    yield
    worker.stop()
    await running


async def _until_ended(queue: str) -> None:
    while await app.jobs.list(state=["ready", "running", "scheduled"], queue=queue, limit=1):
        await asyncio.sleep(0.01)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_main(*(int(argument) for argument in sys.argv[1:4])))

"""Awa's worker, run in its own environment."""

import asyncio
from typing import Any

import uvloop

from bench.apps.slate import WORK_SECONDS, open_slate
from bench.rivals.awa_app import QUEUE, Noop, open_client
from bench.rivals.loops import until_stopped

_STOP_MILLISECONDS = 10_000
# It keeps ended jobs for a minute. Its default is a second, which is too short to count them.
_ROTATE_MILLISECONDS = 60_000


async def _noop(job: Any) -> None:
    open_slate().note(job.args.number)
    if WORK_SECONDS:
        await asyncio.sleep(WORK_SECONDS)


async def _main() -> None:
    client = open_client()
    client.task(Noop, queue=QUEUE.physical_queues[0])(_noop)
    # Without a deadline for each attempt, a claim is one compact row for a whole batch.
    queues = QUEUE.queue_configs(max_workers_per_partition=512, deadline_duration_ms=0)
    await client.start(queues, queue_storage_queue_rotate_interval_ms=_ROTATE_MILLISECONDS)
    await until_stopped()
    await client.shutdown(_STOP_MILLISECONDS)
    await client.close()


if __name__ == "__main__":
    uvloop.run(_main())

"""Awa's worker, run in its own environment."""

import asyncio
import os
from typing import Any

import uvloop

from bench.apps.slate import WORK_SECONDS, open_slate
from bench.rivals.awa_app import QUEUE, Noop, open_client
from bench.rivals.loops import until_stopped


async def _noop(job: Any) -> None:
    open_slate().note(job.args.number)
    if WORK_SECONDS:
        await asyncio.sleep(WORK_SECONDS)


async def _main() -> None:
    client = open_client()
    client.task(Noop, queue=QUEUE.physical_queues[0])(_noop)
    c = os.environ.get("T_CLAIMERS")
    await client.start(
        QUEUE.queue_configs(max_workers_per_partition=int(os.environ.get("T_WORKERS", "256")), claim_batch_size=512, claimers=int(c) if c else None, deadline_duration_ms=int(os.environ["T_DEAD"]) if "T_DEAD" in os.environ else None),
        queue_storage_queue_rotate_interval_ms=int(os.environ.get("T_ROT", "1000")),
        poll_interval_ms=int(os.environ.get("T_POLL", "200")),
    )
    await until_stopped()
    await client.shutdown(timeout_ms=10_000)
    await client.close()


if __name__ == "__main__":
    (asyncio.run if os.environ.get("T_LOOP")=="a" else uvloop.run)(_main())

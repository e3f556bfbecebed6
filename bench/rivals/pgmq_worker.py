"""A worker for PGMQ, which has none: read a batch, run its handlers, archive it."""

import asyncio
from collections.abc import Sequence
from typing import Any

import uvloop
from pgmq.async_queue import PGMQueue  # type: ignore[import-not-found, unused-ignore]

from bench.apps.slate import WORK_SECONDS, open_slate
from bench.rivals.loops import until_stopped
from bench.rivals.pgmq_app import QUEUE, open_client

_BATCH = 1_000
# Several batches at once, so that one is read while others run and are archived.
_AHEAD = 2
_POLL_SECONDS = 0.005
# Longer than any batch takes; otherwise its messages would be read again.
_VISIBILITY_TIMEOUT = 60


async def _handle(message: Any) -> None:
    open_slate().note(message.message["number"])
    if WORK_SECONDS:
        await asyncio.sleep(WORK_SECONDS)


async def _finish(client: PGMQueue, messages: Sequence[Any]) -> None:
    await asyncio.gather(*map(_handle, messages))
    ids = [message.msg_id for message in messages]
    async with client.pool.acquire() as connection:
        await client.archive_batch(QUEUE, ids, conn=connection)


async def _read(client: PGMQueue) -> Sequence[Any]:
    # Not its own read_with_poll, which may wait while it holds locks on messages that other readers
    # have read meanwhile. They could not archive those messages until its wait ends.
    async with client.pool.acquire() as connection:
        messages: Sequence[Any] = await client.read(
            QUEUE, vt=_VISIBILITY_TIMEOUT, qty=_BATCH, conn=connection
        )
    return messages


async def _work(client: PGMQueue) -> None:
    batches: set[asyncio.Task[None]] = set()
    stop = asyncio.create_task(until_stopped())
    while not stop.done():
        messages = await _read(client)
        if messages:
            batches.add(asyncio.create_task(_finish(client, messages)))
        elif not batches:
            await asyncio.wait([stop], timeout=_POLL_SECONDS)
        if len(batches) >= _AHEAD or (batches and not messages):
            done, batches = await asyncio.wait(batches, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                each.result()
    await asyncio.gather(*batches)


async def _main() -> None:
    async with open_client(_AHEAD + 1) as client:
        await _work(client)


if __name__ == "__main__":
    uvloop.run(_main())

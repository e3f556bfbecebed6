"""The producer of the soak: batches at a constant rate, or as fast as the workers can follow.

It takes orders and replies as ``bench.apps.producing`` does. A batch has committed when its call
returns. The reply for a batch is its first number, its size, and when its call began and returned.
"""

import asyncio
import json
import sys
import time
from dataclasses import dataclass
from typing import Any

import uvloop

from bench.apps.noop import app, noop
from bench.apps.slate import Slate, open_slate

__all__: list[str] = []

_Batch = tuple[int, int, int, int]

# Batches a second: jobs arrive steadily, and the producer takes little of the machine.
_PACE = 50
# Concurrent calls, as from several producers; the client's pool has as many connections.
_CALLS = 10
# While capacity is measured.
_PRODUCERS = 3
_LOOK = 0.001


async def _enqueue(first: int, jobs: int) -> _Batch:
    begin = time.monotonic_ns()
    await noop.enqueue_many([noop.request(number=n) for n in range(first, first + jobs)])
    return first, jobs, begin, time.monotonic_ns()


async def _stream(first: int, rate: float, begin: int, end: int) -> list[_Batch]:
    """Enqueue at a constant rate from one moment to another, without waiting for earlier calls."""
    calls: list[asyncio.Task[_Batch]] = []
    free = asyncio.Semaphore(_CALLS)
    number, ticks = first, round((end - begin) / 1e9 * _PACE)
    for tick in range(ticks):
        moment = begin + round(tick * 1e9 / _PACE)
        await asyncio.sleep(max(0, moment - time.monotonic_ns()) / 1e9)
        await free.acquire()
        if time.monotonic_ns() >= end:
            break
        # Computed from the beginning, so that fractions of a job add up.
        until = first + round((tick + 1) * rate / _PACE)
        call = asyncio.create_task(_enqueue(number, until - number))
        call.add_done_callback(lambda _: free.release())
        calls.append(call)
        number = until
    return list(await asyncio.gather(*calls))


async def _saturate(
    first: int, batch: int, backlog: int, warm_up: float, seconds: float
) -> tuple[int, float, float]:
    """Keep a short backlog for a while.

    Returns the next number, jobs started a second, and the share of the time that the producer
    waited for the workers. If it never waits, the figure is the producer's own limit.
    """
    slate = open_slate()
    state = _Saturation(first, first)
    begin = time.monotonic()
    end = begin + warm_up + seconds

    async def produce() -> None:
        while time.monotonic() < end:
            if state.look(slate) >= backlog:
                state.waits += 1
                await asyncio.sleep(_LOOK)
                continue
            number = state.number
            state.number += batch
            await _enqueue(number, batch)

    producing = [asyncio.create_task(produce()) for _ in range(_PRODUCERS)]
    await asyncio.sleep(warm_up)
    before, since = state.number - state.look(slate), time.monotonic()
    await asyncio.gather(*producing)
    taken = time.monotonic() - since
    rate = (state.number - state.look(slate) - before) / taken
    return state.number, rate, state.waits * _LOOK / (warm_up + seconds) / _PRODUCERS


@dataclass(slots=True)
class _Saturation:
    # The next number, and the first number that has not started.
    number: int
    floor: int
    waits: int = 0

    def look(self, slate: Slate) -> int:
        """Count jobs that no handler has started."""
        counts = bytes(slate.counts[self.floor : self.number])
        gap = counts.find(0)
        self.floor = self.number if gap < 0 else self.floor + gap
        return counts.count(0)


_ORDERS: dict[str, Any] = {"stream": _stream, "saturate": _saturate}


async def _main() -> None:
    async with app:
        print(json.dumps("ready"), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            name, *arguments = json.loads(line)
            print(json.dumps(await _ORDERS[name](*arguments)), flush=True)


if __name__ == "__main__":
    uvloop.run(_main())

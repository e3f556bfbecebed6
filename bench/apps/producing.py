"""What producers have in common: they get orders as lines of JSON and answer each with one line.

Only the standard library, since rivals import it in environments of their own.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

__all__ = ["BATCH", "Producer", "serve"]

BATCH = 1_000


class Producer(Protocol):
    """One system's way to enqueue; each call has committed when it returns."""

    async def one(self, number: int) -> None:
        """Enqueue one job."""
        ...

    async def many(self, numbers: Sequence[int]) -> None:
        """Enqueue jobs by the system's bulk call."""
        ...


async def serve(producer: Producer) -> None:
    """Carry out orders until the input ends."""
    print(json.dumps("ready"), flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        name, *arguments = json.loads(line)
        answer = await _ORDERS[name](producer, *arguments)
        print(json.dumps(answer), flush=True)


async def _fill(producer: Producer, first: int, jobs: int) -> float:
    begin = time.perf_counter()
    for at in range(first, first + jobs, BATCH):
        await producer.many(range(at, min(at + BATCH, first + jobs)))
    return time.perf_counter() - begin


async def _singly(producer: Producer, first: int, jobs: int) -> float:
    begin = time.perf_counter()
    for number in range(first, first + jobs):
        await producer.one(number)
    return time.perf_counter() - begin


async def _at(producer: Producer, moments: Sequence[int]) -> list[tuple[int, int]]:
    """Enqueue one job at each moment; answer when each call began and returned."""
    times = []
    for number, moment in enumerate(moments):
        await asyncio.sleep(max(0, moment - time.monotonic_ns()) / 1e9)
        begin = time.monotonic_ns()
        await producer.one(number)
        times.append((begin, time.monotonic_ns()))
    return times


_ORDERS: dict[str, Callable[..., Awaitable[object]]] = {"fill": _fill, "singly": _singly, "at": _at}

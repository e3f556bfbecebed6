"""The shared part of all producers: they read orders as lines of JSON and reply with one line each.

Uses only the standard library, because rivals import it in their own environments.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Protocol

__all__ = ["BATCH", "BlockingProducer", "Producer", "serve", "serve_blocking"]

BATCH = 1_000


class Producer(Protocol):
    """How one system enqueues; each call has committed when it returns."""

    async def one(self, number: int) -> None:
        """Enqueue one job; calls may overlap."""
        ...

    async def many(self, numbers: Sequence[int]) -> None:
        """Enqueue jobs by the system's bulk call."""
        ...


class BlockingProducer(Protocol):
    """The same for a system without asyncio; several threads call ``one`` at once."""

    def one(self, number: int) -> None:
        """Enqueue one job."""
        ...

    def many(self, numbers: Sequence[int]) -> None:
        """Enqueue jobs by the system's bulk call."""
        ...


async def serve(producer: Producer) -> None:
    """Carry out orders until the input ends."""
    print(json.dumps("ready"), flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        name, *arguments = json.loads(line)
        answer = await _ORDERS[name](producer, *arguments)
        print(json.dumps(answer), flush=True)


def serve_blocking(producer: BlockingProducer) -> None:
    """Carry out orders until the input ends, without an event loop."""
    print(json.dumps("ready"), flush=True)
    while line := sys.stdin.readline():
        name, *arguments = json.loads(line)
        answer = _BLOCKING_ORDERS[name](producer, *arguments)
        print(json.dumps(answer), flush=True)


async def _fill(producer: Producer, first: int, jobs: int) -> float:
    begin = time.perf_counter()
    for numbers in _batches(first, jobs):
        await producer.many(numbers)
    return time.perf_counter() - begin


async def _singly(producer: Producer, first: int, jobs: int, concurrency: int = 1) -> float:
    """Enqueue one by one; with more concurrency, that many tasks share the numbers."""
    numbers = iter(range(first, first + jobs))

    async def share() -> None:
        for number in numbers:
            await producer.one(number)

    begin = time.perf_counter()
    if concurrency == 1:
        await share()
    else:
        await asyncio.gather(*(share() for _ in range(concurrency)))
    return time.perf_counter() - begin


async def _at(producer: Producer, moments: Sequence[int]) -> list[tuple[int, int]]:
    """Enqueue one job at each moment; return when each call began and returned."""
    times = []
    for number, moment in enumerate(moments):
        await asyncio.sleep(_rest(moment))
        begin = time.monotonic_ns()
        await producer.one(number)
        times.append((begin, time.monotonic_ns()))
    return times


def _blocking_fill(producer: BlockingProducer, first: int, jobs: int) -> float:
    begin = time.perf_counter()
    for numbers in _batches(first, jobs):
        producer.many(numbers)
    return time.perf_counter() - begin


def _blocking_singly(
    producer: BlockingProducer, first: int, jobs: int, concurrency: int = 1
) -> float:
    numbers = iter(range(first, first + jobs))

    def share() -> None:
        for number in numbers:
            producer.one(number)

    begin = time.perf_counter()
    if concurrency == 1:
        share()
    else:
        threads = _threads(concurrency)
        for each in [threads.submit(share) for _ in range(concurrency)]:
            each.result()
    return time.perf_counter() - begin


def _blocking_at(producer: BlockingProducer, moments: Sequence[int]) -> list[tuple[int, int]]:
    times = []
    for number, moment in enumerate(moments):
        time.sleep(_rest(moment))
        begin = time.monotonic_ns()
        producer.one(number)
        times.append((begin, time.monotonic_ns()))
    return times


def _batches(first: int, jobs: int) -> Iterator[range]:
    for at in range(first, first + jobs, BATCH):
        yield range(at, min(at + BATCH, first + jobs))


def _rest(moment: int) -> float:
    return max(0, moment - time.monotonic_ns()) / 1e9


@cache
def _threads(count: int) -> ThreadPoolExecutor:
    # Threads are kept, so per-thread objects of a product, such as connections, are created once.
    return ThreadPoolExecutor(count)


_ORDERS: dict[str, Callable[..., Awaitable[object]]] = {"fill": _fill, "singly": _singly, "at": _at}
_BLOCKING_ORDERS: dict[str, Callable[..., object]] = {
    "fill": _blocking_fill,
    "singly": _blocking_singly,
    "at": _blocking_at,
}

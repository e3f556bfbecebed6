"""Processes that work at the same time: they prepare, start together, and return their results."""

import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, TypeVar

__all__ = ["run_together", "wait_until"]

_T = TypeVar("_T")

_HEAD_START = 0.05


def run_together(count: int, prepare: Callable[..., Callable[[float], _T]], *args: Any) -> list[_T]:
    """Run processes and return their results.

    Each calls ``prepare(number, *args)``, which returns a function. That function is called with
    the common start time, in seconds of the machine's monotonic clock. These are processes, not
    threads, so Python's global lock does not distort the measure.
    """
    context = multiprocessing.get_context("spawn")
    pipes: list[Connection] = []
    processes = []
    for number in range(count):
        ours, theirs = context.Pipe()
        process = context.Process(target=_child, args=(theirs, prepare, number, args), daemon=True)
        process.start()
        theirs.close()
        pipes.append(ours)
        processes.append(process)
    try:
        for pipe in pipes:
            pipe.recv()
        start = time.monotonic() + _HEAD_START
        for pipe in pipes:
            pipe.send(start)
        return [pipe.recv() for pipe in pipes]
    except EOFError:
        raise RuntimeError("A process of the measure failed; its own message is above") from None
    finally:
        for process in processes:
            process.terminate()
            process.join()


def wait_until(moment: float) -> None:
    """Sleep until this time of the monotonic clock."""
    rest = moment - time.monotonic()
    if rest > 0:
        time.sleep(rest)


def _child(
    pipe: Connection,
    prepare: Callable[..., Callable[[float], object]],
    number: int,
    args: tuple[Any, ...],
) -> None:
    work = prepare(number, *args)
    pipe.send(None)
    start = pipe.recv()
    wait_until(start)
    pipe.send(work(start))

"""Waits for conditions with a deadline, and runs threads whose errors reach the test."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any, TypeVar

import psycopg

__all__ = ["DEADLINE", "backend", "blockers", "duel", "together", "until", "until_blocked"]

_T = TypeVar("_T")
_S = TypeVar("_S")

# Long enough for a busy machine; only a failing test takes this long.
DEADLINE = 180.0


def until(condition: Callable[[], _T], what: str, *, deadline: float = DEADLINE) -> _T:
    """Wait until the condition is true and return its value; fail after the deadline."""
    end = time.monotonic() + deadline
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline} s: {what}")
        time.sleep(0.005)


def backend(connection: psycopg.Connection[Any]) -> int:
    """Return the process id of the connection's server process."""
    return connection.info.backend_pid


def blockers(observer: psycopg.Connection[Any], pid: int) -> list[int]:
    """Return the processes whose locks this one waits for; none if it does not wait."""
    row = observer.execute(
        "select case when a.wait_event_type = 'Lock' then pg_blocking_pids(a.pid) else '{}' end "
        "from pg_stat_activity as a where a.pid = %s",
        (pid,),
    ).fetchone()
    assert row is not None, f"no process {pid}"
    pids: list[int] = row[0]
    return pids


def until_blocked(observer: psycopg.Connection[Any], pid: int) -> list[int]:
    """Wait until the process waits for a lock, and return the processes that hold it."""
    return until(lambda: blockers(observer, pid), f"process {pid} waits for a lock")


def together(actions: Sequence[Callable[[], _T]], *, deadline: float = DEADLINE) -> list[_T]:
    """Run all actions at once, each in a thread; return their results or raise the first error.

    No action starts before all threads exist.
    """
    gate = Barrier(len(actions))

    def start(action: Callable[[], _T]) -> _T:
        gate.wait(deadline)
        return action()

    with ThreadPoolExecutor(max_workers=len(actions)) as pool:
        futures = [pool.submit(start, action) for action in actions]
        end = time.monotonic() + deadline
        return [future.result(timeout=max(0.0, end - time.monotonic())) for future in futures]


def duel(
    pool: ThreadPoolExecutor, left: Callable[[], _T], right: Callable[[], _S]
) -> tuple[_T | Exception, _S | Exception]:
    """Run two actions at the same moment; return the result or the error of each."""
    gate = Barrier(2)

    def start(action: Callable[[], Any]) -> Any:
        gate.wait(DEADLINE)
        try:
            return action()
        except psycopg.Error as error:
            return error

    futures = [pool.submit(start, action) for action in (left, right)]
    first, second = (future.result(DEADLINE) for future in futures)
    return first, second

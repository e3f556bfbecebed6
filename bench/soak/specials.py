"""Jobs that must not wait for the others: urgent ones, and ones that are committed late.

One of each per second, on a separate connection. A late job is inserted 300 ms before its commit,
and meanwhile claims pass its place. Times count from the return of the commit.
"""

import threading
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass

import psycopg

from bench.place import TASK
from bench.soak.beside import beside

__all__ = ["Special", "Specials", "enqueue"]

PRIORITY = 20
_HELD_BACK = 0.3
# Seconds from the start of a second; the late job is committed in between.
_URGENT_AT = 0.65

_ENQUEUE = """
select e.created
from trunkline.enqueue(
  p_task => %s, p_payload => jsonb_build_object('number', %s::bigint), p_priority => %s::integer
) as e
"""


@dataclass(frozen=True, slots=True)
class Special:
    """A special job; times are nanoseconds of the monotonic clock."""

    kind: str
    number: int
    committed: int


def enqueue(connection: psycopg.Connection, number: int, priority: int | None = None) -> None:
    """Enqueue one job in the caller's transaction."""
    row = connection.execute(_ENQUEUE, (TASK, number, priority)).fetchone()
    if row is None or row[0] is not True:
        raise RuntimeError(f"Job {number} was not enqueued")


class Specials:
    """Enqueues special jobs in a thread; numbers count up from zero."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self.used = 0
        self.done: list[Special] = []

    def number(self) -> int:
        """The next free number; not thread-safe."""
        self.used += 1
        return self.used - 1

    def arriving(self) -> AbstractContextManager[None]:
        """Enqueue them while the block runs."""
        return beside(self._arrive)

    def _arrive(self, stop: threading.Event) -> None:
        with psycopg.connect(self._dsn, prepare_threshold=0) as connection:
            begin = time.monotonic()
            while not stop.is_set():
                self._one_of_each(connection, begin, stop)
                begin = max(begin + 1.0, time.monotonic())

    def _one_of_each(
        self, connection: psycopg.Connection, begin: float, stop: threading.Event
    ) -> None:
        number = self.number()
        enqueue(connection, number)
        stop.wait(_HELD_BACK)
        connection.commit()
        self.done.append(Special("late", number, time.monotonic_ns()))
        stop.wait(max(0.0, begin + _URGENT_AT - time.monotonic()))
        if stop.is_set():
            return
        number = self.number()
        enqueue(connection, number, PRIORITY)
        connection.commit()
        self.done.append(Special("urgent", number, time.monotonic_ns()))
        stop.wait(max(0.0, begin + 1.0 - time.monotonic()))

"""Pauses a session within a call while another session does something, or makes the call fail.

Every function of the engine reads ``trunkline.clock()``. Here, the clock pauses a session at its
n-th reading until another call has ended or waits. A test that tries every reading does not depend
on the steps of a function.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import psycopg

from tests.support.calls import Calls
from tests.support.databases import Database
from tests.support.waiting import DEADLINE, backend, blockers, until

__all__ = ["Pauses", "ended_or_blocked"]

_T = TypeVar("_T")
_LOCK = 7_230_002
_CLOCK = f"""
create sequence trunkline_test.readings;
grant usage on sequence trunkline_test.readings to public;
create or replace function trunkline.clock() returns timestamptz language plpgsql volatile as $$
declare
  v_fail text := current_setting('trunkline_test.fail', true);
  v_pause text := current_setting('trunkline_test.pause', true);
  v_reading text;
begin
  if v_fail <> '' or v_pause <> '' then
    v_reading := nextval('trunkline_test.readings');
    if v_reading = v_fail then
      raise exception 'the clock failed';
    elsif v_reading = v_pause then
      perform pg_advisory_xact_lock_shared({_LOCK});
    end if;
  end if;
  return trunkline_test.engine_clock() + (select shift from trunkline_test.clock);
end
$$;
"""


def ended_or_blocked(
    observer: psycopg.Connection[Any], connection: psycopg.Connection[Any], future: Future[Any]
) -> list[int]:
    """Wait until a call of this connection has ended or waits for a lock; return the blockers."""
    pid = backend(connection)

    def blockers_if_any() -> list[list[int]]:
        pids = blockers(observer, pid)
        return [pids] if pids else [[]] if future.done() else []

    return until(blockers_if_any, "the call has ended or waits for a lock")[0]


class Pauses:
    """A database whose clock can pause the session of a worker."""

    def __init__(self, database: Database) -> None:
        database.move_time("0 seconds")
        self.observer = database.superuser()
        self.observer.execute(_CLOCK)
        self.holder = database.superuser()
        self.paused = Calls(database.connect("trunkline_worker"))

    def fail_at(self, reading: int, call: Callable[[Calls], _T]) -> _T | None:
        """Make the clock fail at this reading; return None if the error reached the caller."""
        connection = self.paused.connection
        self.observer.execute("select setval('trunkline_test.readings', 1, false)")
        connection.execute(f"set trunkline_test.fail = '{reading}'".encode())
        try:
            return call(self.paused)
        except psycopg.errors.RaiseException:
            return None
        finally:
            connection.execute("reset trunkline_test.fail")

    def at(
        self,
        reading: int,
        call: Callable[[Calls], _T],
        other: Callable[[], Any],
        others: psycopg.Connection[Any],
    ) -> _T | None:
        """Start a call, and another one while the first is paused at this reading of the clock.
        Returns the result of the first, or None if it ended before that reading. The other call, on
        its own connection, may wait for the first.
        """
        connection = self.paused.connection
        connection.execute(f"set trunkline_test.pause = '{reading}'".encode())
        self.observer.execute("select setval('trunkline_test.readings', 1, false)")
        self.holder.execute("select pg_advisory_lock(%s)", (_LOCK,))
        second: Future[Any] | None = None
        with ThreadPoolExecutor(max_workers=2) as pool:
            first = pool.submit(call, self.paused)
            try:
                if ended_or_blocked(self.observer, connection, first):
                    second = pool.submit(other)
                    ended_or_blocked(self.observer, others, second)
            finally:
                self.holder.execute("select pg_advisory_unlock(%s)", (_LOCK,))
            result = first.result(DEADLINE)
            if second is None:
                return None
            second.result(DEADLINE)
        return result

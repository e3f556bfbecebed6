"""Enqueues jobs in the transactions that write an application's own rows."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import psycopg

from trunkline.client.request import OptionArguments
from trunkline.demo import tasks

__all__ = ["Producer"]

_TABLES = """
create table if not exists demo_orders (
  number integer primary key, placed_at timestamptz default now()
);
create table if not exists demo_effects (
  job_id uuid not null, attempt integer not null, task text not null, at timestamptz default now()
);
"""


class Producer(threading.Thread):
    """Places orders until its time is over; `enqueued` counts the committed jobs."""

    def __init__(self, dsn: str, seconds: float, rate: float) -> None:
        super().__init__(name="demo producer", daemon=True)
        self._dsn = dsn
        self._seconds = seconds
        self._rate = rate
        self._random = random.Random(7)  # noqa: S311 - the same demo every time
        self.enqueued = 0
        self.undone = 0
        self.error: Exception | None = None

    def run(self) -> None:
        """Run in the thread."""
        try:
            with psycopg.connect(self._dsn) as connection:
                self._produce(connection)
        except Exception as error:  # noqa: BLE001 - the thread that joins reports it
            self.error = error

    @staticmethod
    def prepare(dsn: str) -> None:
        """Create the tables of the demo's application."""
        with psycopg.connect(dsn) as connection:
            connection.execute(_TABLES)

    def _produce(self, connection: psycopg.Connection[Any]) -> None:
        begin = time.monotonic()
        number = 0
        while (passed := time.monotonic() - begin) < self._seconds:
            if number >= passed * self._rate:
                time.sleep(0.005)
                continue
            number += 1
            self._order(connection, number)

    def _order(self, connection: psycopg.Connection[Any], number: int) -> None:
        change_of_mind = number % 25 == 0
        jobs = 0
        try:
            with connection.transaction():
                connection.execute("insert into demo_orders (number) values (%s)", (number,))
                jobs = self._jobs(connection, number)
                if change_of_mind:
                    raise _ChangeOfMindError
        except _ChangeOfMindError:
            # Rolled back: neither the order nor its jobs ever existed.
            self.undone += jobs
            return
        self.enqueued += jobs

    def _jobs(self, connection: psycopg.Connection[Any], number: int) -> int:
        options: OptionArguments = {"connection": connection}
        tasks.receipt.sync.options(**options).enqueue(order=number)
        jobs = 1
        if number % 8 == 3:
            tasks.report.sync.options(**options).enqueue(pages=self._random.randint(6, 14))
            jobs += 1
        if number % 15 == 4:
            tasks.flaky.sync.options(**options).enqueue(failures=self._random.randint(1, 3))
            jobs += 1
        if number % 40 == 5:
            tasks.poison.sync.options(**options).enqueue(reason=f"order {number} has no address")
            jobs += 1
        if number % 30 == 6:
            reminder = tasks.reminder.sync.options(delay="1h").enqueue(order=number)
            reminder.cancel("the customer has paid")
            self.enqueued += 1
        return jobs


class _ChangeOfMindError(Exception):
    pass

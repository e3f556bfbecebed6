"""The worker that polls: its ids, its waits, its slots, and what it repeats."""

import threading
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID, uuid4

import psycopg

from profiles.tests.studio.conftest import TEXT, Studio
from tests.support.waiting import until
from trunkline_profiles.studio.poller import (
    Claimed,
    Idle,
    Poller,
    Result,
    SqlDesk,
    new_worker_id,
)


class Table:
    """A desk in memory: what it hands out, and what it is told."""

    def __init__(self, *batches: int | Exception) -> None:
        self.batches = list(batches)
        self.asked: list[int] = []
        self.ended: list[tuple[str, UUID]] = []
        self.complete_errors: list[Exception] = []
        self.alive = True
        self.stop: Callable[[], None] = lambda: None

    def claim(self, count: int) -> Sequence[Claimed]:
        self.asked.append(count)
        if not self.batches:
            self.stop()
            return []
        batch = self.batches.pop(0)
        if isinstance(batch, Exception):
            raise batch
        return [Claimed(uuid4(), uuid4(), TEXT, 0, {}, 1, 3, 1) for _ in range(min(batch, count))]

    def heartbeat(self, _: Claimed) -> bool:
        return self.alive

    def complete(self, task: Claimed, _: Result) -> bool:
        if self.complete_errors:
            raise self.complete_errors.pop(0)
        self.ended.append(("complete", task.id))
        return True

    def fail(self, task: Claimed, error: str) -> str | None:
        self.ended.append((error, task.id))
        return "pending"


def play(table: Table, work: Any = lambda *_: Result({}), **options: Any) -> list[float]:
    """Run until the desk has nothing more; return the pauses."""
    waits: list[float] = []
    poller = Poller(table, work, idle=Idle(lambda: 0.5), pause=waits.append, **options)
    table.stop = poller.stop
    poller.run()
    return waits


def test_ids_of_workers_are_unique_for_each_start() -> None:
    """TA-32: same host, same process."""
    ids = {new_worker_id("pod") for _ in range(100)}
    assert len(ids) == 100
    assert all(one.startswith("pod-") for one in ids)


def test_idle_waits_grow_to_30_seconds_and_start_again_after_work() -> None:
    """TA-34, TA-S07: 5, 10, 20, 30, 30; after one task 5 again."""
    waits = play(Table(0, 0, 0, 0, 0, 1, 0, 0))
    assert waits[:5] == [5, 10, 20, 30, 30]
    assert waits[5:7] == [5, 10]


def test_idle_waits_have_jitter() -> None:
    """TA-34: workers do not poll in step."""
    assert [Idle(lambda: 0.0).next(), Idle(lambda: 1.0).next()] == [4.0, 6.0]
    drawn = {Idle().next() for _ in range(20)}
    assert len(drawn) > 1
    assert all(4 <= wait <= 6 for wait in drawn)


def test_an_error_of_the_loop_waits_ten_seconds_and_goes_on() -> None:
    """TA-35: a failed claim is no empty queue."""
    table = Table(psycopg.OperationalError("away"), ValueError("odd"), 1)
    assert play(table)[:2] == [10, 10]
    assert [outcome for outcome, _ in table.ended] == ["complete"]


def test_a_free_slot_claims_again_while_others_work() -> None:
    """TA-33: five at once; the next claim asks for what is free, and waits for nobody slow."""
    table = Table(5, 1, 1)
    slow = threading.Event()
    first = threading.Lock()

    def work(task: Claimed, stopped: Callable[[], bool]) -> Result:
        if first.acquire(blocking=False):
            # The slowest of the first five ends when all others have.
            until(lambda: len(table.ended) == 6, "the others end")
            slow.set()
        return Result({})

    play(table, work)
    assert slow.is_set()
    assert table.asked[0] == 5
    assert all(1 <= count <= 5 for count in table.asked)
    assert len(table.ended) == 7


def test_a_failed_completion_is_repeated_and_the_work_is_not() -> None:
    """TA-36: until the server answers."""
    table = Table(1)
    table.complete_errors = [psycopg.OperationalError("away"), psycopg.OperationalError("away")]
    works = []

    def work(task: Claimed, stopped: Callable[[], bool]) -> Result:
        works.append(task)
        return Result({})

    waits = play(table, work)
    assert len(works) == 1
    assert waits.count(10) == 2
    assert [outcome for outcome, _ in table.ended] == ["complete"]


def test_a_refused_completion_fails_the_task() -> None:
    """TA-36: repeating it would be refused again."""
    table = Table(1)
    table.complete_errors = [psycopg.errors.RaiseException("output cannot be stored")]
    play(table)
    assert [outcome for outcome, _ in table.ended] == ["output cannot be stored"]


def test_an_error_of_the_work_is_reported() -> None:
    """TA-23, TA-36."""
    table = Table(1)

    def work(*_: Any) -> Result:
        raise LookupError("no paper")

    play(table, work)
    assert [outcome for outcome, _ in table.ended] == ["LookupError: no paper"]


def test_a_lost_task_is_abandoned() -> None:
    """TA-21: a heartbeat that returns false; nothing is completed."""
    table = Table(1)
    table.alive = False

    def work(task: Claimed, stopped: Callable[[], bool]) -> Result:
        until(stopped, "the heartbeat says so")
        return Result({})

    play(table, work, heartbeat=0.01)
    assert table.ended == []


def test_it_works_against_the_database(studio: Studio) -> None:
    """TA-14, TA-21, TA-22, TA-33: all texts of an order, with a file each."""
    job = studio.order()
    dsn = studio.database.dsn
    desk = SqlDesk(dsn, new_worker_id("poller"), [TEXT])
    poller: Poller | None = None

    def work(task: Claimed, stopped: Callable[[], bool]) -> Result:
        path = desk.prepare(task, "json", f"chapter{task.sequence // 3 + 1}.json")
        file = {"path": path, "bytes": 3, "sha256": "0" * 64}
        return Result({"path": path}, [file])

    def pause(seconds: float) -> None:
        # Nothing is left to claim for a moment: the slots end, or the order is done.
        if {task.status for task in studio.tasks(job, TEXT)} == {"complete"}:
            assert poller is not None
            poller.stop()

    poller = Poller(desk, work, pause=pause)
    poller.run()
    desk.close()
    assert len(studio.artifacts(job)) == 16
    assert {task.attempts for task in studio.tasks(job, TEXT)} == {0}

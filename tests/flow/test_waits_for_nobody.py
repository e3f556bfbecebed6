"""Claims, heartbeats, settlements and duties wait for no other transaction, whatever it has locked.

They have to go on while somebody works by hand in a transaction, or in a debugger.
"""

from collections.abc import Callable
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from tests.flow.conftest import Desk
from tests.flow.test_served_tasks import KINDS, enqueue, prepare
from tests.support.calls import Attempt, Calls
from tests.support.databases import Database

LIMITS: dict[str, dict[str, Any]] = {
    "api": {"concurrency": 50, "tokens_per_minute": 100_000},
    "broken": {"breaker_failures": 1},
    "budget/{tenant}": {"quota": 100_000, "quota_unit": "tokens", "quota_window": "1 day"},
    "fair:work/{tenant}": {},
    "key/{key}": {"concurrency": 2},
    "mended": {"breaker_failures": 1},
    "wide": {"concurrency": 100_000},
}
TASKS = ("free", *LIMITS)


class World:
    """Jobs of every kind in every state; two workers, of which one is gone."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        for name, parts in LIMITS.items():
            desk.limit(name, **parts)
            desk.task(name, task=name, cost={"tokens": 10})
        desk.task(task="free")
        worker, operator, producer = desk.worker, desk.operator, desk.producer
        worker.connection.execute("select trunkline.register_worker('gone')")
        worker.connection.execute("select trunkline.sleep('gone')")
        operator.value("select trunkline.trip_breaker('mended', 'by hand', '1 second')")
        assert operator.value("select trunkline.reset_breaker('mended')") == 1
        self.enqueue(2)
        self.stale = desk.claim()
        producer.enqueue_many([{"task": "free", "idempotency_key": str(n)} for n in range(2)])
        for name in "ab":
            operator.connection.execute(
                "select trunkline.set_schedule(%s, '* * * * *', 'free')", (name,)
            )
        desk.database.move_time("31 days")
        worker.run_duty("maintain_partitions()")
        for name in ("w", "asleep"):
            worker.connection.execute("select trunkline.register_worker(%s)", (name,))
        worker.connection.execute("select trunkline.sleep('asleep')")
        self.enqueue(4)
        rows = worker.claim("w", 1000, tasks=list(TASKS)).rows
        attempts = [Attempt(row.job_id, row.attempt, "w") for row in rows]
        self.used = {row.task: attempt for row, attempt in zip(rows, attempts, strict=True)}
        self.fresh = [attempt for attempt in attempts if attempt not in self.used.values()]
        self.dead = self.fresh[:2]
        desk.end(self.dead, "fail", retryable=[False, False])
        self.fresh = self.fresh[2:]
        operator.value("select trunkline.trip_breaker('broken', 'by hand', '1 second')")
        self.ready = self.enqueue(4)
        self.due = self.enqueue(2, delay="30 seconds")
        desk.database.move_time("1 minute")
        # What it runs is not lost.
        worker.value("select trunkline.pulse('w')")

    def enqueue(self, count: int, **more: Any) -> list[Any]:
        jobs = [
            {"task": task, "tenant": "t", "payload": {"key": str(n % 2)}, **more}
            for n in range(count)
            for task in TASKS
        ]
        return [row.job_id for row in self.desk.producer.enqueue_many(jobs)]


def _cancelled(world: World, calls: Calls) -> None:
    for job in (*world.ready[: len(TASKS)], *world.due[: len(TASKS)]):
        calls.change("cancel", job)


def _cancelled_running(world: World, calls: Calls) -> None:
    for attempt in (*world.stale[:5], *world.used.values()):
        calls.change("cancel", attempt.job)


def _reprioritised(world: World, calls: Calls) -> None:
    for job in (*world.ready[: len(TASKS)], *world.due[: len(TASKS)]):
        calls.change("reprioritise", job, 9)


def _claimed(world: World, calls: Calls) -> None:
    assert calls.claim("w", 5).rows


def _claimed_all(world: World, calls: Calls) -> None:
    assert calls.claim("w", 1000).rows


def _completed(world: World, calls: Calls) -> None:
    calls.batch("complete", "w", list(world.used.values()))


def _failed(world: World, calls: Calls) -> None:
    calls.batch("fail", "w", list(world.used.values()))


def _handed_back(world: World, calls: Calls) -> None:
    calls.batch("release", "w", list(world.used.values()), unstarted=True)


def _beaten(world: World, calls: Calls) -> None:
    calls.batch("heartbeat", "w", list(world.used.values()))
    calls.value("select trunkline.pulse('w')")
    calls.value("select trunkline.pulse('gone')")


def _settled(world: World, calls: Calls) -> None:
    for attempt in world.used.values():
        calls.value(
            "select trunkline.settle_job(%s, %s, %s)",
            *(attempt.job, attempt.number, Jsonb({"tokens": 7})),
        )


def _granted(world: World, calls: Calls) -> None:
    assert calls.value("select granted from trunkline.acquire('api')")


def _replayed(world: World, calls: Calls) -> None:
    calls.change("retry", world.dead[0].job)
    calls.change("discard", world.dead[1].job)


def _reset(world: World, calls: Calls) -> None:
    assert calls.value("select trunkline.reset_breaker('broken')") == 1


def _tripped(world: World, calls: Calls) -> None:
    calls.value("select trunkline.trip_breaker('mended', 'by hand', '1 second')")


def _paused(world: World, calls: Calls) -> None:
    calls.connection.execute("select trunkline.pause_schedule('a')")
    calls.value("select trunkline.pause_queue('default')")


def _limited(world: World, calls: Calls) -> None:
    calls.connection.execute("select trunkline.set_limit('api', '{\"concurrency\": 40}')")


def _enqueued(world: World, calls: Calls) -> None:
    assert calls.enqueue("free", idempotency_key="0").created
    for task in TASKS:
        calls.enqueue(task, tenant="t", payload={"key": "0"}, unique_key=task)


def _asleep(world: World, calls: Calls) -> None:
    calls.connection.execute("select trunkline.sleep('w')")
    calls.connection.execute("select trunkline.wake('asleep')")


def _drained(world: World, calls: Calls) -> None:
    calls.connection.execute("select trunkline.drain_worker('gone')")


ACTIONS: dict[Callable[[World, Calls], None], str] = {
    _cancelled: "operator",
    _cancelled_running: "operator",
    _reprioritised: "operator",
    _claimed: "worker",
    _claimed_all: "worker",
    _completed: "worker",
    _failed: "worker",
    _handed_back: "worker",
    _beaten: "worker",
    _settled: "worker",
    _granted: "worker",
    _replayed: "operator",
    _reset: "operator",
    _tripped: "operator",
    _paused: "operator",
    _limited: "operator",
    _enqueued: "producer",
    _asleep: "worker",
    _drained: "operator",
}
DUTIES = ("promote", "run_schedules", "sweep_buckets", "sweep_idempotency", "reclaim")


def impatient(database: Database) -> Calls:
    """Connect as a worker for whom every wait for a lock is an error."""
    calls = Calls(database.connect("trunkline_worker"))
    calls.connection.execute("set lock_timeout = '3s'")
    return calls


@pytest.mark.parametrize("action", ACTIONS)
def test_work_goes_on_during_an_open_transaction(
    desk: Desk, action: Callable[[World, Calls], None]
) -> None:
    world = World(desk)
    other = desk.database.connect(f"trunkline_{ACTIONS[action]}", autocommit=False)
    action(world, Calls(other))
    calls = impatient(desk.database)
    calls.batch("heartbeat", "w", [*world.fresh, *world.used.values()])
    calls.value("select trunkline.pulse('asleep')")
    for attempt in world.fresh:
        calls.value(
            "select trunkline.settle_job(%s, %s, %s)",
            *(attempt.job, attempt.number, Jsonb({"tokens": 3})),
        )
    calls.claim("w", 100)
    for duty in DUTIES:
        calls.connection.execute(f"select trunkline.{duty}()".encode())
    failed = "select array_agg(duty || ': ' || last_error::text) from trunkline.duties"
    assert desk.operator.value(f"{failed} where failures > 0") is None
    calls.batch("complete", "w", world.fresh)
    other.rollback()


@pytest.mark.parametrize("kind", KINDS)
def test_a_claim_passes_by_a_job_in_use(desk: Desk, kind: str) -> None:
    """It takes the others, and that one when it is free again."""
    prepare(desk, kind)
    first, *others = sorted(enqueue(desk, "served"))
    using = desk.database.connect("trunkline_operator", autocommit=False)
    Calls(using).change("cancel", first)
    calls = impatient(desk.database)
    assert sorted(calls.claim("w", 100).jobs) == others
    using.rollback()
    assert desk.claimed() == [first]

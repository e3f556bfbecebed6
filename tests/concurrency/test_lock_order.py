"""Batch calls lock in one order, and those that must not wait do not: seen in pg_stat_activity."""

from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.support.calls import Attempt, Calls
from tests.support.databases import Database
from tests.support.internals import locks, rows
from tests.support.waiting import backend, until_blocked

ENDS = ["complete", "fail", "release", "snooze", "acknowledge_cancel"]


def _hold(database: Database, attempt: Attempt) -> psycopg.Connection[Any]:
    """Lock one running row until the transaction ends."""
    holder = database.superuser(autocommit=False)
    locks.lock_jobs(holder, "running", attempt.job)
    return holder


@pytest.mark.parametrize("batch", list(product(ENDS, [3, 200])), ids=str)
def test_opposite_batches_wait_in_line(
    guarded: Database,
    producer: Calls,
    worker: Calls,
    observer: psycopg.Connection[Any],
    batch: tuple[str, int],
) -> None:
    """The first call is stopped in the middle of its batch; it holds the lowest ids, listed last.

    The second call, in the opposite order, waits for it with nothing in its hands.
    """
    function, size = batch
    producer.fill(size)
    held = sorted(worker.claim("w", size).attempts, key=lambda attempt: attempt.job.int)
    first, second = (Calls(guarded.connect("trunkline_worker")) for _ in range(2))
    holder = _hold(guarded, held[size // 2])
    with ThreadPoolExecutor() as pool:
        one = pool.submit(first.batch, function, "w", list(reversed(held)))
        assert until_blocked(observer, backend(first.connection)) == [backend(holder)]
        two = pool.submit(second.batch, function, "w", held)
        assert until_blocked(observer, backend(second.connection)) == [backend(first.connection)]
        assert locks.unlocked_running(observer) == size - size // 2 - 1
        holder.rollback()
        done, late = one.result(30), two.result(30)
    assert {verdict.verdict for verdict in done} == {"ok"}
    assert [verdict.job for verdict in done] == [attempt.job for attempt in reversed(held)]
    assert {verdict.verdict for verdict in late} == {
        "already" if function == "complete" else "lost"
    }


# A task for each of three requests, and its key: one of both is the same for all.
KEYED = {
    "three keys": [("work", "a"), ("work", "b"), ("work", "c")],
    "three tasks": [("a", "k"), ("b", "k"), ("c", "k")],
}


@pytest.mark.parametrize("profiles", [False, True], ids=["no profile", "profiles"])
@pytest.mark.parametrize("kind", KEYED)
def test_batches_with_the_same_keys_in_opposite_order_do_not_deadlock(
    guarded: Database,
    producer: Calls,
    observer: psycopg.Connection[Any],
    kind: str,
    *,
    profiles: bool,
) -> None:
    """EX-14: keys are taken in one order, whatever the order of the request."""
    requests = [{"task": task, "unique_key": key} for task, key in KEYED[kind]]
    for task in sorted({request["task"] for request in requests}):
        producer.register(task, profile=f"profile of {task}" if profiles else None)
    holder = Calls(guarded.connect("trunkline_producer", autocommit=False))
    holder.enqueue(**requests[1])
    first, second = (Calls(guarded.connect("trunkline_producer")) for _ in range(2))
    with ThreadPoolExecutor() as pool:
        one = pool.submit(first.enqueue_many, list(reversed(requests)))
        try:
            blockers = until_blocked(observer, backend(first.connection))
            assert blockers == [backend(holder.connection)]
            two = pool.submit(second.enqueue_many, requests)
            blockers = until_blocked(observer, backend(second.connection))
            assert blockers == [backend(first.connection)]
        finally:
            # Also after a failure, or the pool would wait for its threads for ever.
            holder.connection.commit()
        answers = [one.result(30), list(reversed(two.result(30)))]
    assert [row.created for row in answers[0]] == [True, False, True]
    assert [row.created for row in answers[1]] == [False, False, False]
    assert [row.job_id for row in answers[0]] == [row.job_id for row in answers[1]]


def test_heartbeat_and_reclaim_pass_a_locked_row_by(
    guarded: Database, producer: Calls, worker: Calls
) -> None:
    """RC-15: nobody waits; the held job is found by the next run."""
    producer.fill(5)
    attempts = worker.claim("w", 5).attempts
    worker.connection.execute("set lock_timeout = '1ms'")
    before = worker.batch("heartbeat", "w", attempts)
    holder = _hold(guarded, attempts[2])
    guarded.move_time("1 minute")
    beats = worker.batch("heartbeat", "w", attempts)
    assert [verdict.verdict for verdict in beats] == ["ok"] * 5
    moved = [beat.run_at != was.run_at for beat, was in zip(beats, before, strict=True)]
    assert moved == [True, True, False, True, True]
    guarded.move_time("10 minutes")
    lost = {row.job_id for row in worker.reclaim()}
    assert lost == {attempt.job for attempt in attempts} - {attempts[2].job}
    holder.rollback()
    assert [row.job_id for row in worker.reclaim()] == [attempts[2].job]


def test_promotion_passes_a_locked_row_by(
    guarded: Database, producer: Calls, worker: Calls
) -> None:
    """TA-16: a due job that another call holds is made ready by the next look."""
    jobs = producer.fill(4, delay="1 minute")
    guarded.move_time("2 minutes")
    worker.connection.execute("set lock_timeout = '1ms'")
    holder = guarded.superuser(autocommit=False)
    locks.lock_jobs(holder, "waiting", jobs[1])
    assert worker.run_duty("promote()") == 3
    assert sorted(worker.claim("w", 10).jobs) == sorted([jobs[0], jobs[2], jobs[3]])
    holder.rollback()
    assert worker.run_duty("promote()") == 1
    assert worker.claim("w", 10).jobs == [jobs[1]]


def test_registrations_of_the_same_tasks_in_opposite_order_do_not_deadlock(
    guarded: Database, observer: psycopg.Connection[Any]
) -> None:
    """Each batch locks in the order of the names, whatever the order of its document."""
    tasks = [{"task": f"task {n}"} for n in range(10)]
    holder, first, second = (
        Calls(guarded.connect("trunkline_worker", autocommit=False)) for _ in range(3)
    )
    register = "select trunkline.register_tasks(%s)"
    holder.value(register, Jsonb(tasks))
    holder.connection.commit()
    holder.register("task 5", priority=1)
    changed = [task | {"priority": 2} for task in tasks]
    with ThreadPoolExecutor() as pool:
        one = pool.submit(first.value, register, Jsonb(changed))
        assert until_blocked(observer, backend(first.connection)) == [backend(holder.connection)]
        two = pool.submit(second.value, register, Jsonb(changed[::-1]))
        # At the first name, which the first has locked: it holds none of what that one waits for.
        assert until_blocked(observer, backend(second.connection)) == [backend(first.connection)]
        holder.connection.commit()
        assert one.result(60) == 10
        first.connection.commit()
        # It looks again after the wait and finds nothing to write any more.
        assert two.result(60) == 0
        second.connection.commit()
    policies = observer.execute(
        "select distinct priority from trunkline.tasks where task <> 'work'"
    )
    assert policies.fetchall() == [(2,)]


def test_reclaim_passes_by_a_flag_that_is_being_taken_back(
    guarded: Database, worker: Calls, observer: psycopg.Connection[Any]
) -> None:
    """Who is found gone while he wakes up is no reason to wait."""
    worker.value("select trunkline.register_worker('gone')")
    worker.value("select trunkline.sleep('gone')")
    other = guarded.connect("trunkline_worker", autocommit=False)
    other.execute("select trunkline.wake('gone')")
    guarded.move_time("1 minute")
    worker.connection.execute("set lock_timeout = '1ms'")
    worker.reclaim()
    other.rollback()
    failures = "select failures from trunkline.duties where duty = 'reclaim'"
    assert observer.execute(failures).fetchone() == (0,)
    assert rows.count(observer, "sleepers") == 1
    worker.reclaim()
    assert rows.count(observer, "sleepers") == 0

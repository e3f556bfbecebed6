"""Duties run by everybody at once: each piece of work is done once, nobody waits."""

from typing import Any

import psycopg

from tests.support import guard
from tests.support.calls import Calls
from tests.support.databases import Database
from tests.support.internals import rows
from tests.support.waiting import together

CALLERS = 8
STALE = 1000


def _caller(database: Database) -> Calls:
    """A caller for whom any wait for a lock is an error."""
    calls = Calls(database.connect("trunkline_worker"))
    calls.connection.execute("set lock_timeout = '1ms'")
    return calls


def test_eight_reclaimers_take_each_stale_job_once(
    guarded: Database, producer: Calls, worker: Calls, observer: psycopg.Connection[Any]
) -> None:
    """RC-15, RC-S05: exactly one event a job; no call waits for another."""
    jobs = producer.fill(STALE)
    assert len(worker.claim("w", STALE).rows) == STALE
    guarded.move_time("1 hour")

    def reclaim() -> list[Any]:
        calls = _caller(guarded)
        mine: list[Any] = []
        while calls.value("select exists (select from trunkline.stale_validation)"):
            mine += [row.job_id for row in calls.reclaim(100)]
        return mine

    observer.execute("grant select on trunkline.stale_validation to trunkline_worker")
    taken = [job for share in together([reclaim] * CALLERS) for job in share]
    assert len(taken) == STALE
    assert set(taken) == set(jobs)
    events = observer.execute(
        "select count(*), count(distinct job_id) from trunkline.events where kind = 'lost'"
    ).fetchone()
    assert events == (STALE, STALE)
    assert guard.job_counts(observer) == (STALE, 0, 0, 0, STALE)
    assert (
        Calls(observer).value("select failures from trunkline.duties where duty = 'reclaim'") == 0
    )


def test_a_second_reclaim_returns_at_once_while_one_runs(
    guarded: Database, producer: Calls, worker: Calls
) -> None:
    """RC-15: the guard of the duty, held by another transaction, costs no wait."""
    job = producer.enqueue().job_id
    worker.claim("w")
    guarded.move_time("1 hour")
    first = Calls(guarded.connect("trunkline_worker", autocommit=False))
    assert [row.job_id for row in first.reclaim()] == [job]
    second = _caller(guarded)
    assert second.reclaim() == []
    first.connection.rollback()
    assert [row.job_id for row in second.reclaim()] == [job]


def test_all_duties_run_by_everybody(database: Database) -> None:
    """Each duty is guarded: together the callers promote, reclaim and sweep everything once.

    Without the guard of the test database, which reads tables that making partitions locks.
    """
    producer, worker = (Calls(database.connect(f"trunkline_{r}")) for r in ("producer", "worker"))
    observer = database.superuser()
    producer.register("work")
    due = producer.fill(300, delay="1 minute")
    producer.enqueue_many([{"task": "work", "idempotency_key": str(n)} for n in range(100)])
    assert len(worker.claim("w", 100).rows) == 100
    database.move_time("8 days")
    # After such a pause the partitions of today are missing: first they are made, by one.
    worker.run_duty("maintain_partitions()")
    database.move_time("2 minutes")

    def care() -> None:
        calls = _caller(database)
        for _ in range(3):
            calls.connection.execute("select * from trunkline.run_duties()").fetchall()

    together([care] * CALLERS)
    assert guard.job_counts(observer) == (400, 0, 0, 0, 400)
    look = Calls(observer)
    assert rows.count(observer, "waiting", state="ready") >= len(due)
    assert rows.count(observer, "idempotency_keys") == 0
    assert look.value("select count(*) from trunkline.events where kind = 'lost'") == 100
    duties = observer.execute("select duty, runs > 0, failures from trunkline.duties order by 1")
    assert duties.fetchall() == [
        ("advance_workflows", True, 0),
        ("decide_workers", True, 0),
        ("expand_workflows", True, 0),
        ("expire", True, 0),
        ("maintain_partitions", True, 0),
        ("promote", True, 0),
        ("reclaim", True, 0),
        ("run_schedules", True, 0),
        ("sweep_artifacts", True, 0),
        ("sweep_buckets", True, 0),
        ("sweep_idempotency", True, 0),
        ("sweep_labels", True, 0),
        ("sweep_live", True, 0),
        ("sweep_operator_log", True, 0),
        ("sweep_steps", True, 0),
        ("sweep_workflows", True, 0),
    ]

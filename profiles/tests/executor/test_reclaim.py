"""Reclaim: what becomes of a stale job, who may still touch it, and who is told."""

import re
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from profiles.tests.executor.conftest import Desk
from tests.support.calls import Calls
from tests.support.databases import Database
from tests.support.internals.locks import lock_jobs
from tests.support.waiting import together

STALE = 1000
CALLERS = 8


def lose(desk: Desk, times: int, worker: str = "w1") -> Any:
    """Let a job be claimed and lost so many times; return it."""
    job = desk.enqueue()
    for _ in range(times):
        desk.pass_time("11 minutes")
        assert desk.worker.claim(worker, 10).jobs == [job]
        desk.pass_time("31 minutes")
        desk.reclaim()
    return job


def test_rc_10_reports_what_it_took_back(desk: Desk) -> None:
    """RC-10: id, type, old worker, new status and attempts; no arguments."""
    job = desk.start(worker="w7")
    desk.pass_time("31 minutes")
    (row,) = desk.reclaim()
    assert row._asdict() == {
        "id": job,
        "type": "run_tsa",
        "old_worker": "w7",
        "new_status": "queued",
        "attempts": 2,
    }
    assert desk.reclaim() == []


def test_rc_11_a_stale_job_is_queued_again(desk: Desk) -> None:
    """RC-11, RC-13: attempts + 1, lock cleared, and the reason with old worker and lock time."""
    job = desk.start(worker="w7")
    locked = desk.row(job).locked_at
    desk.pass_time("31 minutes")
    desk.reclaim()
    row = desk.row(job)
    assert (row.status, row.attempts, row.locked_at, row.locked_by) == ("queued", 2, None, None)
    assert row.last_error == (
        f"RECLAIMED_TTL: Exceeded TTL (30 min); worker w7, locked at {locked:%Y-%m-%dT%H:%M:%SZ}"
    )


def test_rc_12_dead_at_the_tenth_attempt(desk: Desk) -> None:
    """RC-12, RC-13, RC-21, RC-50: ten lost attempts, not one more, and attempts stays at ten."""
    job = lose(desk, 9)
    assert (desk.row(job).status, desk.row(job).attempts) == ("queued", 10)
    desk.pass_time("11 minutes")
    assert desk.worker.claim("w1", 10).jobs == [job]
    assert (desk.row(job).status, desk.row(job).attempts) == ("running", 10)
    desk.pass_time("31 minutes")
    (taken,) = desk.reclaim()
    assert (taken.new_status, taken.attempts) == ("dead", 10)
    row = desk.row(job)
    assert (row.status, row.attempts, row.locked_by) == ("dead", 10, None)
    assert re.match(r"RECLAIMED_TTL: .*Max attempts reached", row.last_error)
    desk.pass_time("1 day")
    assert desk.worker.claim("w1", 10).jobs == []


def test_rc_21_failed_and_lost_attempts_count_the_same(desk: Desk) -> None:
    """RC-21, RC-50: five failures and five losses make it dead."""
    job = desk.enqueue()
    for number in range(10):
        desk.pass_time("11 minutes")
        claim = desk.worker.claim("w1", 10)
        assert claim.jobs == [job]
        if number % 2:
            desk.worker.batch("fail", "w1", claim.attempts)
        else:
            desk.pass_time("31 minutes")
            desk.reclaim()
    assert desk.row(job).status == "dead"


def test_rc_21_a_job_that_kills_its_workers_has_ten_attempts_too(desk: Desk) -> None:
    """RC-21, RC-11: the engine's limit of three deaths is not this profile's."""
    job = desk.enqueue()
    for number in range(1, 10):
        desk.pass_time("11 minutes")
        worker = f"doomed-{number}"
        desk.worker.connection.execute("select trunkline.register_worker(%s)", (worker,))
        assert desk.worker.claim(worker, 10).jobs == [job]
        desk.pass_time("31 minutes")
        desk.reclaim()
        assert (desk.row(job).status, desk.row(job).attempts) == ("queued", number + 1)


def test_rc_16_a_run_takes_at_most_five_hundred(desk: Desk) -> None:
    """RC-16: the rest at the next run."""
    desk.producer.enqueue_many([{"task": "run_tsa"}] * 501)
    assert len(desk.worker.claim("w1", 501).rows) == 501
    desk.pass_time("31 minutes")
    assert len(desk.reclaim()) == 500
    assert len(desk.reclaim()) == 1


def test_rc_17_every_reclaim_is_an_event(desk: Desk) -> None:
    """RC-17, RC-36: job, attempt, old worker, lock and heartbeat times, action, newest first."""
    job = desk.start(worker="w1")
    locked = desk.row(job).locked_at
    desk.pass_time("1 minute")
    assert desk.beat(job)
    beaten = desk.row(job).heartbeat_at
    desk.pass_time("31 minutes")
    desk.reclaim()
    desk.pass_time("1 minute")
    assert desk.worker.claim("w2").jobs == [job]
    desk.pass_time("31 minutes")
    desk.reclaim()
    history = desk.rows("select * from executor.executor_jobs_reclaim_history")
    assert [(row.id, row.attempt, row.old_worker, row.action) for row in history] == [
        (job, 2, "w2", "queued"),
        (job, 1, "w1", "queued"),
    ]
    assert (history[1].locked_at, history[1].heartbeat_at) == (locked, beaten)
    assert all(row.last_error.startswith("RECLAIMED_TTL:") for row in history)


@pytest.mark.parametrize(("losses", "seconds"), [(1, 10), (2, 20), (4, 80), (8, 600)])
def test_rc_18_a_lost_job_waits_by_its_back_off(desk: Desk, losses: int, seconds: int) -> None:
    """RC-18: 10 s doubling to 10 min, with a jitter of a fifth that never goes above the cap."""
    job = lose(desk, losses)
    (last,) = desk.rows("select at, due_at from executor.executor_jobs_reclaim_history limit 1")
    assert desk.row(job).due_at == last.due_at
    wait = (last.due_at - last.at) / timedelta(seconds=1)
    assert 0.8 * seconds - 0.01 <= wait <= min(1.2 * seconds, 600)


def test_rc_s05_eight_reclaims_at_once(desk: Desk, database: Database) -> None:
    """RC-S05, RC-15: each job has one event, and nobody waits for a lock."""
    desk.producer.enqueue_many([{"task": "run_tsa"}] * STALE)
    assert len(desk.worker.claim("w1", STALE).rows) == STALE
    desk.pass_time("31 minutes")

    def reclaim() -> int:
        calls = Calls(database.connect("trunkline_operator"))
        # Any wait for a lock is an error.
        calls.connection.execute("set lock_timeout = '1ms'")
        taken = 0
        while calls.value("select count(*) from executor.executor_jobs where status = 'running'"):
            found = calls.connection.execute("select * from executor.reclaim_stale_jobs()")
            taken += len(found.fetchall())
        return taken

    assert sum(together([reclaim] * CALLERS)) == STALE
    assert desk.rows(
        "select count(*) as events, count(distinct id) as jobs"
        " from executor.executor_jobs_reclaim_history"
    ) == [(STALE, STALE)]
    assert desk.rows("select sum(failures) from trunkline.duties where duty = 'reclaim'") == [(0,)]


def test_rc_15_a_row_that_somebody_holds_is_skipped(desk: Desk, database: Database) -> None:
    """RC-15, RC-49: the job is taken at the next run, and this one waits for nobody."""
    job = desk.start()
    desk.pass_time("31 minutes")
    holder = database.superuser(autocommit=False)
    lock_jobs(holder, "running")
    desk.worker.connection.execute("set lock_timeout = '1ms'")
    assert desk.reclaim() == []
    holder.rollback()
    assert [row.id for row in desk.reclaim()] == [job]


def test_rc_s06_a_late_worker_changes_nothing(desk: Desk) -> None:
    """RC-S06, RC-19, RC-32, RC-49: heartbeat, complete and fail of the old lease are refused.

    That the outside service sees one effect is in test_handlers and test_tasks.
    """
    job = desk.enqueue()
    old = desk.worker.claim("w1").attempts
    desk.pass_time("31 minutes")
    desk.reclaim()
    desk.pass_time("1 minute")
    new = desk.worker.claim("w2").attempts
    before = desk.row(job)
    assert not desk.beat(job, "w1")
    assert not desk.beat(job, "w1", 1)
    # The same worker, back after a pause, is told apart by its attempt.
    assert not desk.beat(job, "w2", 1)
    for function in ("heartbeat", "complete", "fail"):
        assert [v.verdict for v in desk.worker.batch(function, "w1", old)] == ["lost"]
    assert desk.row(job) == before
    assert [v.verdict for v in desk.worker.batch("complete", "w2", new)] == ["ok"]
    assert desk.row(job).status == "succeeded"


def test_rc_22_dead_jobs_are_listed_and_requeued(desk: Desk) -> None:
    """RC-22: listed, inspected, and given a new budget by an operator, with an event."""
    dead = []
    for kind in ("run_tsa", "build_artifact"):
        dead.append(desk.start(kind))
        attempt = desk.operator.value(
            "select attempt from executor.executor_jobs_stale_monitor where id = %s", dead[-1]
        )
        desk.worker.connection.execute(
            "select trunkline.fail('w1', array[%s]::uuid[], array[%s],"
            """ array['{"type": "Refused", "message": "no"}'::jsonb], array[false])""",
            (dead[-1], attempt),
        )
    listed = desk.rows("select id, last_error from executor.executor_jobs where status = 'dead'")
    assert {row.id: row.last_error for row in listed} == dict.fromkeys(dead, "Refused: no")
    assert desk.rows("select executor.requeue_dead_jobs('run_tsa')") == [(dead[0],)]
    row = desk.row(dead[0])
    assert (row.status, row.attempts) == ("queued", 1)
    assert desk.row(dead[1]).status == "dead"
    events = desk.rows("select kind from trunkline.events where job_id = %s", dead[0])
    assert "replayed" in {row.kind for row in events}


def test_rc_22_a_held_key_keeps_one_dead_job_and_not_the_others(desk: Desk) -> None:
    """RC-22: the way back from a faulty roll-out does not stop at the first problem."""
    held, free = desk.enqueue(key="doc-1"), desk.enqueue(key="doc-2")
    attempts = desk.worker.claim("w1", 2).attempts
    desk.worker.batch("fail", "w1", attempts, retryable=[False, False])
    desk.enqueue(key="doc-1")
    assert desk.rows("select executor.requeue_dead_jobs()") == [(free,)]
    assert desk.row(held).status == "dead"


def test_others_are_taken_back_but_not_reported(desk: Desk) -> None:
    """RC-10: jobs of other profiles are none of its rows."""
    desk.producer.register("mail", lease="1 minute")
    desk.producer.enqueue("mail")
    desk.worker.claim("w1")
    desk.pass_time("2 minutes")
    assert desk.reclaim() == []
    assert desk.rows("select count(*) from trunkline.reclaim_history") == [(1,)]
    assert desk.rows("select count(*) from executor.executor_jobs_reclaim_history") == [(0,)]


def test_a_snapshot_is_refused(desk: Desk, database: Database) -> None:
    """RC-19: under a held snapshot reclaim would decide on old rows."""
    connection = database.connect("trunkline_worker", autocommit=False)
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    with pytest.raises(psycopg.Error, match="isolation"):
        connection.execute("select executor.reclaim_stale_jobs()")

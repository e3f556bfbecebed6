"""Wake-ups: reclaim first, then the workers, whatever came of it."""

import itertools
from typing import Any

import psycopg
import pytest

from profiles.tests.executor.conftest import Desk
from tests.support.databases import Database
from tests.support.internals.breaks import BREAK_RECLAIM, repair_reclaim
from tests.support.stranger import advisory_locks, stranger
from tests.support.waiting import backend

WRAPPERS = {
    "process_orchestrator_jobs": "orchestrator",
    "wake_execution_engine": "fase1-executor",
}
BREAK_THE_PROFILE = """
create or replace function executor.reclaim_stale_jobs()
returns table (id uuid, type text, old_worker text, new_status text, attempts integer)
language plpgsql as $$ begin raise exception 'made to fail'; end $$
"""


def heard(listener: psycopg.Connection[Any]) -> list[str]:
    """What a sleeping worker has been told so far."""
    listener.execute("select 1")
    return [notice.payload for notice in listener.notifies(timeout=0, stop_after=10)]


@pytest.mark.parametrize(("wrapper", "queue"), WRAPPERS.items())
def test_rc_23_reclaims_and_then_wakes(
    desk: Desk, listener: psycopg.Connection[Any], wrapper: str, queue: str
) -> None:
    """RC-23, RC-63: the lost job is queued and the workers of the queue are woken by one call."""
    job = desk.start()
    desk.pass_time("31 minutes")
    answer = desk.wake(wrapper)
    assert (answer.reclaimed, answer.woken, answer.error) == (1, queue, None)
    assert desk.row(job).status == "queued"
    assert heard(listener) == [queue]


def test_rc_23_the_workers_are_woken_after_the_reclaim(
    desk: Desk, database: Database, listener: psycopg.Connection[Any]
) -> None:
    """RC-23: whoever is woken finds the job: the notice comes with the commit of the reclaim."""
    job = desk.start()
    desk.pass_time("31 minutes")
    scheduler = database.connect("trunkline_worker", autocommit=False)
    scheduler.execute("select executor.process_orchestrator_jobs()")
    assert heard(listener) == []
    assert desk.row(job).status == "running"
    scheduler.commit()
    assert heard(listener) == ["orchestrator"]
    assert desk.row(job).status == "queued"


def test_rc_24_the_wrappers_alternate(desk: Desk) -> None:
    """RC-24: one of them every 15 seconds, so each every 30, however often somebody asks."""
    ask = "select executor.run_wake_ups()"
    called = []
    for _ in range(4):
        called.append(desk.worker.value(ask))
        assert desk.worker.value(ask) is None
        desk.pass_time("14 seconds")
        assert desk.worker.value(ask) is None
        desk.pass_time("1 second")
    assert called == [*WRAPPERS, *WRAPPERS]
    cycles = desk.rows("select at from executor.executor_cycles order by cycle")
    gaps = [(b.at - a.at).total_seconds() for a, b in itertools.pairwise(cycles)]
    assert all(15 <= gap < 30 for gap in gaps)


def test_rc_24_two_schedulers_make_one_cycle(desk: Desk, database: Database) -> None:
    """RC-24: the second waits for nothing and does nothing."""
    first = database.connect("trunkline_worker", autocommit=False)
    first.execute("select executor.run_wake_ups()")
    desk.worker.connection.execute("set lock_timeout = '1ms'")
    assert desk.worker.value("select executor.run_wake_ups()") is None
    first.commit()
    assert desk.rows("select count(*) from executor.executor_cycles") == [(1,)]


def test_a_stranger_with_advisory_locks_does_not_stop_the_wake_ups(
    desk: Desk, database: Database
) -> None:
    caller = database.connect("trunkline_worker", autocommit=False)
    caller.execute("select executor.run_wake_ups()")
    seen = advisory_locks(database.superuser(), backend(caller))
    caller.rollback()
    job = desk.start()
    desk.pass_time("31 minutes")
    with stranger(database.superuser_dsn, seen):
        assert desk.worker.value("select executor.run_wake_ups()") == "process_orchestrator_jobs"
        assert desk.row(job).status == "queued"


def test_rc_24_schedulers_of_a_later_cycle_make_one_too(desk: Desk, database: Database) -> None:
    """RC-24: also when there is a record of earlier cycles."""
    assert desk.worker.value("select executor.run_wake_ups()") == "process_orchestrator_jobs"
    desk.pass_time("2 days")
    first = database.connect("trunkline_worker", autocommit=False)
    first.execute("select executor.run_wake_ups()")
    desk.worker.connection.execute("set lock_timeout = '1ms'")
    assert desk.worker.value("select executor.run_wake_ups()") is None
    first.commit()
    assert desk.worker.value("select executor.run_wake_ups()") is None


def test_rc_24_a_clock_that_was_set_back_stops_nothing(desk: Desk) -> None:
    """RC-24: the last cycle lies in the future then."""
    assert desk.worker.value("select executor.run_wake_ups()") == "process_orchestrator_jobs"
    desk.pass_time("-1 hour")
    assert desk.worker.value("select executor.run_wake_ups()") == "wake_execution_engine"


@pytest.mark.parametrize("breakage", [BREAK_RECLAIM, BREAK_THE_PROFILE])
def test_rc_s07_a_failing_reclaim_does_not_stop_the_wake_up(
    desk: Desk, database: Database, listener: psycopg.Connection[Any], breakage: str
) -> None:
    """RC-S07, RC-25, RC-51: warned and counted, workers woken, and an alert at the third time."""
    job = desk.start()
    desk.pass_time("31 minutes")
    warnings: list[str] = []
    desk.worker.connection.add_notice_handler(
        lambda notice: warnings.append(str(notice.message_primary))
    )
    database.superuser().execute(breakage.encode())
    metric = "select value, alert from executor.executor_metrics"
    metric += " where metric = 'reclaim_failures_in_a_row'"
    for number, wrapper in enumerate((*WRAPPERS, "process_orchestrator_jobs"), start=1):
        answer = desk.wake(wrapper)
        assert answer.error
        assert (answer.failures_in_a_row, answer.alert) == (number, number == 3)
        assert heard(listener) == [WRAPPERS[wrapper]]
        assert desk.rows(metric) == [(number, number == 3)]
    # The engine warns too, of its duty.
    ours = [warning for warning in warnings if " in a row: " in warning]
    assert [warning.startswith("ALERT: ") for warning in ours] == [False, False, True]
    assert desk.row(job).status == "running"


def test_rc_25_the_next_cycle_tries_again(desk: Desk, database: Database) -> None:
    """RC-25, RC-51: what failed is made up for, and the count starts anew."""
    job = desk.start()
    desk.pass_time("31 minutes")
    superuser = database.superuser()
    superuser.execute(BREAK_RECLAIM)
    assert desk.wake("process_orchestrator_jobs").failures_in_a_row == 1
    repair_reclaim(superuser)
    answer = desk.wake("wake_execution_engine")
    assert (answer.reclaimed, answer.error, answer.failures_in_a_row) == (1, None, 0)
    assert desk.row(job).status == "queued"


def test_rc_26_reclaim_needs_no_worker(desk: Desk) -> None:
    """RC-26: with nobody listening the job is taken back, by the wake-up or by the duty."""
    job = desk.start()
    desk.pass_time("31 minutes")
    desk.worker.connection.execute("select trunkline.run_duties()")
    assert desk.row(job).status == "queued"


def test_rc_27_back_in_the_queue_within_thirty_seconds_of_the_ttl(desk: Desk) -> None:
    """RC-27, RC-53: with a look every 15 seconds, from the last sign of life on."""
    job = desk.start()
    started = desk.row(job).locked_at
    desk.pass_time("29 minutes 50 seconds")
    while desk.row(job).status == "running":
        desk.pass_time("15 seconds")
        desk.worker.value("select executor.run_wake_ups()")
    (event,) = desk.rows("select at from executor.executor_jobs_reclaim_history")
    assert 1800 <= (event.at - started).total_seconds() <= 1830


def test_cycles_are_kept_for_a_day(desk: Desk) -> None:
    """RC-56: long enough to look at, and no longer."""
    desk.wake("process_orchestrator_jobs")
    desk.pass_time("25 hours")
    desk.wake("wake_execution_engine")
    assert desk.rows("select wrapper from executor.executor_cycles") == [("wake_execution_engine",)]

"""Steps, waits and events against what happens at the same time, with transactions held open."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.support.calls import Attempt, Calls
from tests.support.databases import Database
from tests.support.internals import steps
from tests.support.waiting import backend, until_blocked

SEND = "select outcome from trunkline.send_event(p_name => 'go', p_payload => '1', p_job => %s)"


def started(producer: Calls, worker: Calls) -> Attempt:
    producer.enqueue()
    return worker.claim("w").attempts[0]


def wait(worker: Calls, attempt: Attempt, timeout: str | None = None) -> str:
    outcome: str = worker.value(
        "select (trunkline.begin_wait('w', %s, %s, 1, 'event', 'go', '#1',"
        " p_timeout => %s::interval)).outcome",
        attempt.job,
        attempt.number,
        timeout,
    )
    return outcome


def suspend(worker: Calls, attempt: Attempt) -> str | None:
    return worker.batch("suspend", "w", [attempt])[0].state


def record(worker: Calls, attempt: Attempt) -> str:
    verdicts: list[str] = worker.value(
        "select trunkline.record_steps('w', %s, %s, '{1}', '{a}', '{#1}', '{null}', %s)",
        [attempt.job],
        [attempt.number],
        [Jsonb(1)],
    )
    return verdicts[0]


def state(observer: psycopg.Connection[Any], job: UUID) -> str:
    row = observer.execute("select state from trunkline.jobs where job_id = %s", (job,)).fetchone()
    assert row is not None
    found: str = row[0]
    return found


def test_an_event_in_an_open_transaction_does_not_hold_up_a_suspension(
    producer: Calls, worker: Calls, guarded: Database, observer: psycopg.Connection[Any]
) -> None:
    attempt = started(producer, worker)
    assert wait(worker, attempt) == "wait"
    with producer.connection.transaction():
        assert producer.value(SEND, attempt.job) == "stored"
        # Neither sees the other: the job checks again soon.
        assert suspend(worker, attempt) == "scheduled"
    guarded.move_time("2 seconds")
    (again,) = worker.claim("w").attempts
    assert wait(worker, again) == "over"


def test_an_event_that_waits_for_a_suspension_is_delivered(
    producer: Calls, worker: Calls, observer: psycopg.Connection[Any]
) -> None:
    attempt = started(producer, worker)
    wait(worker, attempt)
    with ThreadPoolExecutor() as pool:
        with worker.connection.transaction():
            assert suspend(worker, attempt) == "blocked"
            sent = pool.submit(producer.value, SEND, attempt.job)
            until_blocked(observer, backend(producer.connection))
        assert sent.result() == "delivered"
    assert state(observer, attempt.job) == "ready"


def test_an_event_before_the_suspension_makes_the_job_ready(producer: Calls, worker: Calls) -> None:
    attempt = started(producer, worker)
    wait(worker, attempt)
    assert producer.value(SEND, attempt.job) == "stored"
    assert suspend(worker, attempt) == "ready"


def test_an_event_against_the_timeout(
    producer: Calls, worker: Calls, guarded: Database, observer: psycopg.Connection[Any]
) -> None:
    """The promotion of the timeout holds the row: the event waits, and is still received."""
    attempt = started(producer, worker)
    wait(worker, attempt, "1 hour")
    assert suspend(worker, attempt) == "scheduled"
    guarded.move_time("1 hour")
    with ThreadPoolExecutor() as pool:
        with worker.connection.transaction():
            (again,) = worker.claim("w").attempts
            sent = pool.submit(producer.value, SEND, attempt.job)
            until_blocked(observer, backend(producer.connection))
        assert sent.result() == "stored"
    assert wait(worker, again, "1 hour") == "over"


def test_an_event_against_a_cancel(
    producer: Calls, worker: Calls, operator: Calls, observer: psycopg.Connection[Any]
) -> None:
    attempt = started(producer, worker)
    wait(worker, attempt)
    suspend(worker, attempt)
    with ThreadPoolExecutor() as pool:
        with operator.connection.transaction():
            assert operator.change("cancel", attempt.job, None).outcome == "cancelled"
            sent = pool.submit(producer.value, SEND, attempt.job)
            until_blocked(observer, backend(producer.connection))
        with pytest.raises(psycopg.Error) as refused:
            sent.result()
    assert refused.value.sqlstate == "TL019"
    assert state(observer, attempt.job) == "cancelled"
    assert not steps.sent_events(observer)


def test_a_cancel_against_an_event(
    producer: Calls, worker: Calls, operator: Calls, observer: psycopg.Connection[Any]
) -> None:
    attempt = started(producer, worker)
    wait(worker, attempt)
    suspend(worker, attempt)
    with ThreadPoolExecutor() as pool:
        with producer.connection.transaction():
            assert producer.value(SEND, attempt.job) == "delivered"
            cancelled = pool.submit(operator.change, "cancel", attempt.job, None)
            until_blocked(observer, backend(operator.connection))
        assert cancelled.result().outcome == "cancelled"


def test_two_events_of_one_name_at_once(
    producer: Calls, worker: Calls, guarded: Database, observer: psycopg.Connection[Any]
) -> None:
    other = Calls(guarded.connect("trunkline_producer"))
    attempt = started(producer, worker)
    with ThreadPoolExecutor() as pool:
        with producer.connection.transaction():
            assert producer.value(SEND, attempt.job) == "stored"
            second = pool.submit(other.value, SEND, attempt.job)
            until_blocked(observer, backend(other.connection))
        assert second.result() == "already"


def test_a_heartbeat_passes_a_step_that_is_being_recorded(
    producer: Calls, worker: Calls, guarded: Database
) -> None:
    other = Calls(guarded.connect("trunkline_worker"))
    attempt = started(producer, worker)
    with worker.connection.transaction():
        assert record(worker, attempt) == "ok"
        before = other.batch("heartbeat", "w", [attempt])[0].run_at
        guarded.move_time("1 minute")
        after = other.batch("heartbeat", "w", [attempt])[0].run_at
    assert before is not None
    assert after is not None
    assert (after - before).total_seconds() >= 60


def test_a_reclaim_leaves_a_job_whose_step_is_being_recorded(
    producer: Calls, worker: Calls, guarded: Database
) -> None:
    other = Calls(guarded.connect("trunkline_worker"))
    attempt = started(producer, worker)
    guarded.move_time("1 hour")
    with worker.connection.transaction():
        assert record(worker, attempt) == "ok"
        assert other.reclaim() == []
    assert [row.job_id for row in other.reclaim()] == [attempt.job]
    assert record(worker, attempt) == "lost"


def test_a_step_waits_for_a_reclaim_and_is_lost(
    producer: Calls, worker: Calls, guarded: Database, observer: psycopg.Connection[Any]
) -> None:
    other = Calls(guarded.connect("trunkline_worker"))
    attempt = started(producer, worker)
    guarded.move_time("1 hour")
    with ThreadPoolExecutor() as pool:
        with other.connection.transaction():
            assert len(other.reclaim()) == 1
            recorded = pool.submit(partial(record, worker, attempt))
            until_blocked(observer, backend(worker.connection))
        assert recorded.result() == "lost"
    assert not steps.recorded(observer)


def test_a_suspension_waits_for_a_reclaim_and_is_lost(
    producer: Calls, worker: Calls, guarded: Database, observer: psycopg.Connection[Any]
) -> None:
    other = Calls(guarded.connect("trunkline_worker"))
    attempt = started(producer, worker)
    wait(worker, attempt)
    guarded.move_time("1 hour")
    with ThreadPoolExecutor() as pool:
        with other.connection.transaction():
            assert len(other.reclaim()) == 1
            suspended = pool.submit(worker.batch, "suspend", "w", [attempt])
            until_blocked(observer, backend(worker.connection))
        assert suspended.result()[0].verdict == "lost"
    assert state(observer, attempt.job) == "scheduled"

"""RF-120: who sleeps is notified about work of his queues, and nobody else is, by real LISTEN."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from tests.support.calls import Attempt, Calls
from tests.support.databases import Database
from tests.support.ear import CANCEL, Ear

Sleep = Callable[..., Any]
Action = Callable[[], Any]


@pytest.fixture
def ear(guarded: Database) -> Ear:
    return Ear(guarded)


@pytest.fixture
def sleeper(worker: Calls) -> Sleep:
    """Lets a registered worker sleep on the given queues and gives the answer."""

    def sleep(*queues: str, name: str = "sleeper") -> Any:
        worker.value("select trunkline.register_worker(%s)", name)
        return worker.value("select trunkline.sleep(%s, %s)", name, list(queues) or None)

    return sleep


def test_without_a_sleeper_nobody_is_notified(ear: Ear, producer: Calls, worker: Calls) -> None:
    producer.enqueue()
    producer.enqueue_many([{"task": "work"}] * 3)
    producer.enqueue_many([{"task": "work", "unique_key": "k"}])
    worker.batch("release", "w", worker.claim("w").attempts)
    assert ear.heard() == []


@pytest.mark.parametrize("asleep", [(), ("post", "default")], ids=["all queues", "some"])
def test_a_sleeper_is_notified(
    ear: Ear, producer: Calls, sleeper: Sleep, asleep: tuple[str, ...]
) -> None:
    sleeper(*asleep)
    producer.enqueue()
    assert ear.heard() == ["default"]
    producer.enqueue(queue="post")
    assert ear.heard() == ["post"]
    producer.enqueue_many([{"task": "work"}, {"task": "work", "queue": "post"}] * 50)
    assert sorted(ear.heard()) == ["default", "post"]
    producer.enqueue_many([{"task": "work", "unique_key": f"k{n}"} for n in range(20)])
    assert ear.heard() == ["default"]


def test_only_the_queue_concerned_is_named(ear: Ear, producer: Calls, sleeper: Sleep) -> None:
    sleeper("post")
    producer.enqueue()
    producer.enqueue_many([{"task": "work"}])
    assert ear.heard() == []
    producer.enqueue_many([{"task": "work"}, {"task": "work", "queue": "post"}])
    assert ear.heard() == ["post"]


def test_a_worker_that_woke_up_is_not_notified(
    ear: Ear, producer: Calls, worker: Calls, sleeper: Sleep
) -> None:
    sleeper()
    assert worker.value("select trunkline.wake('sleeper')") is True
    producer.enqueue()
    assert ear.heard() == []


def test_a_rollback_notifies_nobody(
    ear: Ear, guarded: Database, producer: Calls, sleeper: Sleep
) -> None:
    sleeper()
    with guarded.connect("trunkline_producer", autocommit=False) as connection:
        other = Calls(connection)
        other.enqueue()
        other.enqueue_many([{"task": "work"}])
        assert ear.heard() == []
        connection.rollback()
        assert ear.heard() == []
        other.enqueue()
        other.enqueue()
        connection.commit()
        assert ear.heard() == ["default"]
    assert len(producer.connection.execute("select from trunkline.jobs").fetchall()) == 2


def test_a_duplicate_is_no_news(ear: Ear, producer: Calls, sleeper: Sleep) -> None:
    producer.enqueue(unique_key="k")
    sleeper()
    producer.enqueue(unique_key="k")
    assert ear.heard() == []


def test_a_job_due_within_a_minute_notifies_workers_that_slept_before_it_existed(
    ear: Ear, producer: Calls, sleeper: Sleep
) -> None:
    """CP-95: sleep tells the next due time; a later one is found by the poll of each minute."""
    assert sleeper() is None
    producer.enqueue(delay=timedelta(minutes=2))
    producer.enqueue_many([{"task": "work", "delay": "2 minutes"}])
    assert ear.heard() == []
    soon = producer.enqueue(delay=timedelta(seconds=30))
    assert ear.heard() == ["default"]
    assert sleeper() == soon.run_at
    producer.enqueue_many([{"task": "work", "delay": "30 seconds"}])
    assert ear.heard() == ["default"]


@dataclass(frozen=True, slots=True)
class Crew:
    database: Database
    producer: Calls
    worker: Calls
    operator: Calls

    def claimed(self) -> list[Attempt]:
        self.producer.enqueue()
        return self.worker.claim("w").attempts


def _released(crew: Crew) -> Action:
    held = crew.claimed()
    return lambda: crew.worker.batch("release", "w", held)


def _failed(crew: Crew) -> Action:
    held = crew.claimed()
    return lambda: crew.worker.batch("fail", "w", held, delays=[timedelta(seconds=5)])


def _snoozed(crew: Crew) -> Action:
    held = crew.claimed()
    return lambda: crew.worker.put_off("w", held, timedelta(seconds=5))


def _lost(crew: Crew) -> Action:
    crew.claimed()
    crew.database.move_time("6 minutes")
    return crew.worker.reclaim


def _promoted(crew: Crew) -> Action:
    crew.producer.enqueue(delay=timedelta(seconds=5))
    crew.database.move_time("6 seconds")
    return lambda: crew.operator.run_duty("promote()")


def _replayed(crew: Crew) -> Action:
    (held,) = crew.claimed()
    crew.worker.batch("fail", "w", [held], retryable=[False])
    return lambda: crew.operator.change("retry", held.job)


def _retried(crew: Crew) -> Action:
    (held,) = crew.claimed()
    crew.worker.batch("complete", "w", [held])
    return lambda: crew.operator.change("retry", held.job)


def _resumed(crew: Crew) -> Action:
    crew.producer.enqueue()
    crew.operator.value("select trunkline.pause_queue('default')")
    return lambda: crew.operator.value("select trunkline.resume_queue('default')")


def _maintained(crew: Crew) -> Action:
    crew.producer.enqueue()
    crew.operator.value("select trunkline.set_setting('claims_enabled', 'false')")
    return lambda: crew.operator.value("select trunkline.set_setting('claims_enabled', null)")


@pytest.fixture
def crew(guarded: Database, producer: Calls, worker: Calls, operator: Calls) -> Crew:
    return Crew(guarded, producer, worker, operator)


@pytest.mark.parametrize(
    "prepare",
    [_released, _failed, _snoozed, _lost, _promoted, _replayed, _retried, _resumed, _maintained],
)
def test_whatever_makes_a_job_claimable_notifies(
    ear: Ear, crew: Crew, sleeper: Sleep, prepare: Callable[[Crew], Action]
) -> None:
    """At once, or within the minute in which nobody polls."""
    action = prepare(crew)
    assert ear.heard() == []
    sleeper("default", "elsewhere")
    assert action()
    assert ear.heard() == ["default"]


def test_what_brings_no_job_now_notifies_nobody(ear: Ear, crew: Crew, sleeper: Sleep) -> None:
    first, second = crew.claimed(), crew.claimed()
    sleeper()
    crew.worker.put_off("w", first, timedelta(minutes=5))
    crew.worker.batch("complete", "w", second)
    crew.operator.value("select trunkline.limit_queue('default', 100)")
    assert crew.operator.value("select trunkline.resume_queue('default')") is False
    crew.operator.value("select trunkline.set_setting('claims_enabled', 'false')")
    assert crew.operator.run_duty("promote()") == 0
    assert ear.heard() == []


def test_the_cancel_of_a_running_job_notifies_at_once(
    ear: Ear, guarded: Database, producer: Calls, worker: Calls
) -> None:
    """CP-50: the worker need not wait for its next heartbeat; it hears the id and nothing else."""
    running = producer.enqueue().job_id
    assert worker.claim("w").jobs == [running]
    waiting = producer.enqueue().job_id
    with guarded.connect("trunkline_producer", autocommit=False) as connection:
        Calls(connection).change("cancel", running)
        connection.rollback()
    producer.change("cancel", waiting)
    assert ear.heard(CANCEL) == []
    assert producer.change("cancel", running).outcome == "requested"
    assert ear.heard(CANCEL) == [str(running)]


def test_a_job_between_flag_and_claim_is_found_by_the_next_claim(
    ear: Ear, guarded: Database, worker: Calls, sleeper: Sleep
) -> None:
    """An enqueue under way when the flag is set notifies nobody: that is what polling is for."""
    with guarded.connect("trunkline_producer", autocommit=False) as connection:
        early = Calls(connection).enqueue().job_id
        sleeper()
        assert worker.claim("sleeper").jobs == []
        connection.commit()
    assert ear.heard() == []
    assert worker.claim("sleeper").jobs == [early]


def test_an_enqueue_does_not_wait_for_a_worker_that_sets_its_flag(
    ear: Ear, guarded: Database, producer: Calls, worker: Calls
) -> None:
    worker.value("select trunkline.register_worker('w')")
    with guarded.connect("trunkline_worker", autocommit=False) as connection:
        connection.execute("select trunkline.sleep('w')")
        producer.connection.execute("set lock_timeout = '5s'")
        producer.enqueue()
        producer.enqueue_many([{"task": "work"}])
        connection.commit()
    assert ear.heard() == []

"""Whatever brings a job that may be claimed wakes whoever sleeps on its queue, and nobody else."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from tests.flow.conftest import Desk
from tests.flow.test_breakers import breaker, calling
from tests.flow.test_grants import acquire
from tests.flow.test_woken import THERE, Action, sleep
from tests.support.ear import Ear

LIMITS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "slots": {"api": {"concurrency": 5}},
    "requests": {"api": {"requests_per_minute": 5}},
    "keys": {"key/{key}": {"concurrency": 5}},
    "share group": {"fair:work/{key}": {}},
    "two": {"api": {"concurrency": 5}, "all": {"requests_per_minute": 5}},
}
PAYLOAD = {"key": "k"}
JOB: dict[str, Any] = {"task": "work", "payload": PAYLOAD}


def _one(desk: Desk, delay: timedelta) -> Any:
    return desk.producer.enqueue(payload=PAYLOAD, delay=delay)


def _keyed(desk: Desk, delay: timedelta) -> Any:
    return desk.producer.enqueue(payload=PAYLOAD, delay=delay, unique_key="u")


def _many(desk: Desk, delay: timedelta) -> Any:
    return desk.producer.enqueue_many([JOB | {"delay": f"{delay.seconds} seconds"}] * 3)


def _many_keyed(desk: Desk, delay: timedelta) -> Any:
    job = JOB | {"delay": f"{delay.seconds} seconds"}
    return desk.producer.enqueue_many([job | {"unique_key": str(n)} for n in range(3)])


def _batch(desk: Desk, delay: timedelta) -> Any:
    return desk.producer.value("select trunkline.enqueue_batch('work', %s)", Jsonb([PAYLOAD] * 3))


@pytest.fixture
def ear(desk: Desk) -> Ear:
    return Ear(desk.database)


def prepare(desk: Desk, kind: str) -> None:
    for name, parts in LIMITS[kind].items():
        desk.limit(name, **parts)
    desk.task(*LIMITS[kind], queue="there")


@pytest.mark.parametrize("enqueue", [_one, _keyed, _many, _many_keyed, _batch])
@pytest.mark.parametrize("kind", LIMITS)
def test_new_jobs_wake(
    desk: Desk, ear: Ear, kind: str, enqueue: Callable[[Desk, timedelta], Any]
) -> None:
    prepare(desk, kind)
    enqueue(desk, timedelta(0))
    assert ear.heard() == [], "nobody sleeps"
    desk.end(desk.claim())
    sleep(desk, "there", "elsewhere")
    assert ear.heard() == []
    enqueue(desk, timedelta(0))
    assert set(ear.heard()) == set(THERE)


@pytest.mark.parametrize("enqueue", [_one, _keyed, _many, _many_keyed])
@pytest.mark.parametrize("kind", ["nothing", "slots"])
@pytest.mark.parametrize(("seconds", "expected"), [(5, THERE), (600, [])])
def test_jobs_that_are_due_soon_wake(
    desk: Desk,
    ear: Ear,
    kind: str,
    enqueue: Callable[[Desk, timedelta], Any],
    *,
    seconds: int,
    expected: list[str],
) -> None:
    """A sleeper has computed when to wake up before they were there."""
    prepare(desk, kind)
    sleep(desk, "there", "elsewhere")
    enqueue(desk, timedelta(seconds=seconds))
    assert set(ear.heard()) == set(expected)


def _released(desk: Desk) -> Action:
    held = desk.claim()
    return lambda: desk.end(held, "release")


def _failed(desk: Desk) -> Action:
    held = desk.claim()
    return lambda: desk.end(held, "fail", delays=[timedelta(seconds=5)])


def _snoozed(desk: Desk) -> Action:
    held = desk.claim()
    return lambda: desk.worker.put_off("w", held, timedelta(seconds=5))


def _lost(desk: Desk) -> Action:
    desk.claim()
    desk.database.move_time("6 minutes")
    return desk.worker.reclaim


def _replayed(desk: Desk) -> Action:
    held = desk.claim()
    desk.end(held, "fail", retryable=[False])
    return lambda: desk.operator.change("retry", held[0].job)


def _repeated(desk: Desk) -> Action:
    held = desk.claim()
    desk.end(held)
    return lambda: desk.operator.change("retry", held[0].job)


@pytest.mark.parametrize("kind", ["nothing", "slots", "share group"])
@pytest.mark.parametrize("begin", [_released, _failed, _snoozed, _lost, _replayed, _repeated])
def test_jobs_that_come_back_wake(
    desk: Desk, ear: Ear, kind: str, begin: Callable[[Desk], Action]
) -> None:
    prepare(desk, kind)
    desk.enqueue(1, payload=PAYLOAD)
    action = begin(desk)
    sleep(desk, "there", "elsewhere")
    assert ear.heard() == []
    action()
    assert set(ear.heard()) == set(THERE)


@pytest.mark.parametrize("fair", [False, True])
def test_a_breaker_that_an_operator_closes_wakes(desk: Desk, ear: Ear, *, fair: bool) -> None:
    breaker(desk)
    limits = ["api"]
    if fair:
        desk.limit("fair:work/{key}")
        limits = ["fair:work/{key}", "api"]
    calling(desk, *limits)
    desk.operator.value("select trunkline.trip_breaker('api', 'by hand', '1 hour')")
    desk.enqueue(1, queue="there", payload=PAYLOAD)
    assert desk.claim() == []
    sleep(desk, "there", "elsewhere")
    desk.operator.value("select trunkline.reset_breaker('api')")
    assert set(ear.heard()) == set(THERE)
    assert len(desk.claim()) == 1


def test_jobs_that_go_to_wait_elsewhere_wake_for_those_behind_them(desk: Desk, ear: Ear) -> None:
    """A claim that found only jobs whose other limit is spent may leave one behind that fits."""
    desk.limit("first", concurrency=50).limit("spent", requests_per_hour=1)
    assert acquire(desk, "spent").granted
    desk.task("first", "spent", task="stuck").task("first")
    desk.enqueue(30, task="stuck")
    fits = desk.enqueue(1)
    sleep(desk)
    while not (found := desk.claimed(1)):
        assert ear.heard() == ["default"], "or the job that fits waits for the next poll"
    assert found == fits


def test_a_pause_that_ends_because_the_clock_was_set_back_wakes(desk: Desk, ear: Ear) -> None:
    """A provider said wait for a minute; that would have lasted a day and a minute."""
    desk.limit("api", requests_per_minute=5).task("api", queue="there")
    desk.worker.value("select trunkline.observe_limit('api', '{\"retry_after\": 60}')")
    desk.enqueue(1)
    assert desk.claim() == []
    desk.operator.value("select trunkline.sweep_buckets()")
    desk.database.move_time("-1 day")
    sleep(desk, "there", "elsewhere")
    desk.operator.value("select trunkline.sweep_buckets()")
    assert set(ear.heard()) == set(THERE)

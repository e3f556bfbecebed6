"""A slot or room that becomes free wakes workers of every queue in which jobs wait for it."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.flow.conftest import Desk
from tests.flow.test_grants import acquire, settle
from tests.support.calls import Attempt
from tests.support.ear import Ear

Action = Callable[[], Any]
HERE, THERE = ["here"], ["there"]


@pytest.fixture
def ear(desk: Desk) -> Ear:
    return Ear(desk.database)


def sleep(desk: Desk, *queues: str) -> None:
    desk.worker.value("select trunkline.register_worker('sleeper')")
    desk.worker.value("select trunkline.sleep('sleeper', %s)", list(queues) or None)


def start(desk: Desk) -> list[Attempt]:
    """Take the only slot with a job of one queue, while one of another waits for it."""
    desk.enqueue(1, queue="here", tenant="t")
    held = desk.worker.claim("w", 10, queues=HERE).attempts
    assert len(held) == 1
    desk.enqueue(1, queue="there", tenant="t")
    assert desk.worker.claim("w", 10, queues=THERE).rows == []
    return held


def _completed(desk: Desk) -> Action:
    held = start(desk)
    return lambda: desk.end(held)


def _failed(desk: Desk) -> Action:
    held = start(desk)
    return lambda: desk.end(held, "fail", delays=[timedelta(hours=1)])


def _buried(desk: Desk) -> Action:
    held = start(desk)
    return lambda: desk.end(held, "fail", retryable=[False])


def _snoozed(desk: Desk) -> Action:
    held = start(desk)
    return lambda: desk.worker.put_off("w", held, timedelta(hours=1))


def _released(desk: Desk) -> Action:
    held = start(desk)
    return lambda: desk.end(held, "release")


def _cancelled(desk: Desk) -> Action:
    held = start(desk)
    desk.producer.change("cancel", held[0].job)
    return lambda: desk.end(held, "acknowledge_cancel")


def _reclaimed(desk: Desk) -> Action:
    start(desk)
    desk.database.move_time("6 minutes")
    return desk.worker.reclaim


def _lost_with_a_grant(desk: Desk) -> Action:
    """Not limited itself: it asked for the slot while it ran, and never gave it back."""
    desk.producer.register("asks")
    desk.enqueue(1, task="asks", queue="here", tenant="t")
    (held,) = desk.worker.claim("w", 10, queues=HERE).attempts
    assert acquire(desk, attempt=held).granted
    desk.enqueue(1, queue="there", tenant="t")
    assert desk.worker.claim("w", 10, queues=THERE).rows == []
    desk.database.move_time("6 minutes")
    return desk.worker.reclaim


def _settled(desk: Desk) -> Action:
    grant = acquire(desk).grant_id
    desk.enqueue(1, queue="there", tenant="t")
    assert desk.worker.claim("w", 10, queues=THERE).rows == []
    return lambda: settle(desk, grant)


ENDS = [
    _completed,
    _failed,
    _buried,
    _snoozed,
    _released,
    _cancelled,
    _reclaimed,
    _lost_with_a_grant,
    _settled,
]


@pytest.mark.parametrize("prepare", ENDS)
def test_a_free_slot_wakes_a_worker_of_another_queue(
    desk: Desk, ear: Ear, prepare: Callable[[Desk], Action]
) -> None:
    """Or it would be found by the next poll, half a minute later."""
    desk.limit("api", concurrency=1).task("api")
    action = prepare(desk)
    sleep(desk, "there", "elsewhere")
    assert ear.heard() == []
    action()
    assert ear.heard() == THERE
    assert len(desk.worker.claim("w", 10, queues=THERE).rows) == 1


@pytest.mark.parametrize("asleep", [("here",), ()], ids=["its own queue", "all queues"])
def test_a_completed_job_wakes_a_worker_that_sleeps_on_its_queue(
    desk: Desk, ear: Ear, asleep: tuple[str, ...]
) -> None:
    desk.limit("api", concurrency=1).task("api")
    desk.enqueue(2, queue="here")
    held = desk.worker.claim("w", 10, queues=HERE).attempts
    sleep(desk, *asleep)
    desk.end(held)
    assert ear.heard() == HERE


@pytest.mark.parametrize("prepare", [_completed, _failed, _settled])
def test_a_worker_of_a_share_group_in_another_queue_is_woken_too(
    desk: Desk, ear: Ear, prepare: Callable[[Desk], Action]
) -> None:
    desk.limit("api", concurrency=1).limit("fair:share/{tenant}")
    desk.task("fair:share/{tenant}", "api")
    action = prepare(desk)
    sleep(desk, "there", "elsewhere")
    action()
    assert ear.heard() == THERE


@pytest.mark.parametrize("first", ["api", "other"])
def test_every_limit_of_an_ended_job_wakes(desk: Desk, ear: Ear, first: str) -> None:
    limits = sorted(["api", "other"], key=lambda name: name != first)
    desk.limit("api", concurrency=1).limit("other", concurrency=5)
    desk.task(*limits, task="both").task("api")
    desk.enqueue(1, task="both", queue="here")
    held = desk.worker.claim("w", 10, queues=HERE).attempts
    desk.enqueue(1, queue="there")
    sleep(desk, "there")
    desk.end(held)
    assert ear.heard() == THERE


def test_of_many_ends_each_queue_hears_once(desk: Desk, ear: Ear) -> None:
    desk.limit("doc/{n}", concurrency=1).task("doc/{n}")
    for queue in ("here", "there", "third", "fourth"):
        desk.producer.enqueue_many(
            [{"task": "work", "queue": queue, "payload": {"n": str(n)}} for n in range(50)]
        )
    held = desk.worker.claim("w", 100, queues=HERE).attempts
    assert len(held) == 50
    sleep(desk, "there", "fourth", "elsewhere")
    desk.end(held)
    assert sorted(ear.heard()) == ["fourth", "there"]


def test_what_frees_nothing_for_others_wakes_nobody_else(desk: Desk, ear: Ear) -> None:
    """An end gives back no requests; nor does it free a slot of a limit others do not wait for."""
    desk.limit("api", requests_per_minute=1).task("api", task="rated")
    desk.limit("mine", concurrency=1).task("mine")
    held = []
    for task in ("rated", "work"):
        desk.enqueue(1, task=task, queue="here")
        held += desk.worker.claim("w", 10, queues=HERE).attempts
    desk.enqueue(1, task="rated", queue="there")
    sleep(desk, "there")
    desk.end(held)
    assert ear.heard() == []

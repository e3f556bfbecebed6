"""Room that a window or quota gets back wakes whoever sleeps where jobs wait for it."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.flow.conftest import Desk
from tests.flow.test_grants import acquire, settle, settle_job
from tests.flow.test_woken import HERE, THERE, Action, sleep, start
from tests.support.calls import Attempt
from tests.support.ear import Ear

# Jobs of a spent quota wait instead of being refused.
DAY = {"quota_window": "1 day", "quota_buffer": 1, "quota_refuses": False}
# Limits that a single job of this cost spends.
SPENT: dict[str, dict[str, Any]] = {
    "requests_per_minute": {"requests_per_minute": 1},
    "requests_per_hour": {"requests_per_hour": 1},
    "tokens_per_minute": {"tokens_per_minute": 100},
    "tokens_per_hour": {"tokens_per_hour": 100},
    "quota of requests": {"quota": 1, "quota_unit": "requests", **DAY},
    "quota of tokens": {"quota": 100, "quota_unit": "tokens", **DAY},
    "quota of units": {"quota": 10, "quota_unit": "pages", **DAY},
}
COST = {"requests": 1, "tokens": 100, "units": 10}
LESS = {"requests": 0, "tokens": 0, "units": 0}


@pytest.fixture
def ear(desk: Desk) -> Ear:
    return Ear(desk.database)


def _settled(desk: Desk) -> Action:
    (held,) = start(desk)
    return lambda: settle_job(desk, held, **LESS)


def _handed_back(desk: Desk) -> Action:
    held = start(desk)
    return lambda: desk.end(held, "release", unstarted=True)


def _grant_of_job(desk: Desk) -> Action:
    (held,) = start(desk)
    grant = acquire(desk, attempt=held)
    assert grant.granted
    return lambda: settle(desk, grant.grant_id, **LESS)


def _grant_alone(desk: Desk) -> Action:
    grant = acquire(desk, requests=1, tokens=100, units=10)
    assert grant.granted
    desk.enqueue(1, queue="there", tenant="t")
    assert desk.worker.claim("w", 10, queues=THERE).rows == []
    return lambda: settle(desk, grant.grant_id, **LESS)


@pytest.mark.parametrize("prepare", [_settled, _handed_back, _grant_of_job, _grant_alone])
@pytest.mark.parametrize("part", SPENT)
def test_room_that_comes_back_wakes_another_queue(
    desk: Desk, ear: Ear, part: str, prepare: Callable[[Desk], Action]
) -> None:
    """Or it would be found by the next poll, half a minute later."""
    desk.limit("api", **SPENT[part]).task("api", cost=COST)
    action = prepare(desk)
    sleep(desk, "there", "elsewhere")
    assert ear.heard() == []
    action()
    assert set(ear.heard()) == set(THERE)
    assert len(desk.worker.claim("w", 10, queues=THERE).rows) == 1


@pytest.mark.parametrize("prepare", [_settled, _handed_back, _grant_alone])
def test_room_that_comes_back_wakes_workers_of_a_share_group(
    desk: Desk, ear: Ear, prepare: Callable[[Desk], Action]
) -> None:
    """They wait for their share, not in the lane of the spent limit."""
    desk.limit("api", tokens_per_minute=100).limit("fair:share/{tenant}")
    desk.task("fair:share/{tenant}", "api", cost=COST)
    action = prepare(desk)
    sleep(desk, "there", "elsewhere")
    action()
    assert set(ear.heard()) == set(THERE)


def test_a_second_budget_that_gets_room_back_wakes_workers(desk: Desk, ear: Ear) -> None:
    """The call was granted by the provider's limit; the budget's room comes back with it."""
    desk.limit("api", requests_per_minute=50).limit("budget", **SPENT["quota of tokens"])
    desk.task("api", "budget", cost=COST)
    (held,) = start(desk)
    grant = acquire(desk, attempt=held)
    assert grant.granted
    sleep(desk, "there", "elsewhere")
    settle(desk, grant.grant_id, tokens=0)
    assert set(ear.heard()) == set(THERE)
    assert len(desk.worker.claim("w", 10, queues=THERE).rows) == 1


@pytest.mark.parametrize("actual", [100, 130])
def test_a_call_that_took_no_less_wakes_nobody(desk: Desk, ear: Ear, actual: int) -> None:
    desk.limit("api", tokens_per_minute=100).task("api", cost=COST)
    (held,) = start(desk)
    sleep(desk, "there")
    assert settle_job(desk, held, tokens=actual) == "settled"
    assert ear.heard() == []


def _raised(desk: Desk) -> Action:
    start(desk)
    return lambda: desk.limit("api", tokens_per_minute=200)


def _resumed(desk: Desk) -> Action:
    desk.limit("api", tokens_per_minute=200)
    desk.set_limit("api", {}, "maintenance")
    desk.enqueue(1, queue="there", tenant="t")
    assert desk.worker.claim("w", 10, queues=THERE).rows == []
    return lambda: desk.set_limit("api", {}, "active")


def _lifted(desk: Desk) -> Action:
    """A provider said wait and takes it back."""
    observe = "select trunkline.observe_limit('api', %s)"
    desk.limit("api", tokens_per_minute=200)
    desk.worker.value(observe, '{"retry_after": 600}')
    desk.enqueue(1, queue="there", tenant="t")
    assert desk.worker.claim("w", 10, queues=THERE).rows == []
    return lambda: desk.worker.value(observe, '{"retry_after": 0}')


@pytest.mark.parametrize("prepare", [_raised, _resumed, _lifted])
def test_opening_a_limit_wakes_workers(
    desk: Desk, ear: Ear, prepare: Callable[[Desk], Action]
) -> None:
    desk.limit("api", tokens_per_minute=100).task("api", cost=COST)
    action = prepare(desk)
    sleep(desk, "there", "elsewhere")
    assert ear.heard() == []
    action()
    assert set(ear.heard()) == set(THERE)
    assert len(desk.worker.claim("w", 10, queues=THERE).rows) == 1


def test_a_job_handed_back_unstarted_wakes_its_own_queue(desk: Desk, ear: Ear) -> None:
    desk.limit("api", tokens_per_minute=100).task("api", cost=COST)
    desk.enqueue(1, queue="here")
    held: list[Attempt] = desk.worker.claim("w", 10, queues=HERE).attempts
    sleep(desk, "here")
    desk.end(held, "release", unstarted=True)
    assert set(ear.heard()) == set(HERE)
    assert len(desk.worker.claim("w", 10, queues=HERE).rows) == 1


def test_a_snoozed_job_gives_a_window_no_room_back(desk: Desk, ear: Ear) -> None:
    """Only a job that never started does."""
    desk.limit("api", tokens_per_minute=100).task("api", cost=COST)
    held = start(desk)
    sleep(desk, "there")
    desk.worker.put_off("w", held, timedelta(hours=1))
    assert ear.heard() == []
    assert desk.worker.claim("w", 10, queues=THERE).rows == []

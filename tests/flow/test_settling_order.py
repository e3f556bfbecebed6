"""Whoever settles an attempt takes its limits in one order, so that no two wait in a circle."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import psycopg
import pytest

from tests.flow.conftest import Desk
from tests.support.calls import Attempt, Calls
from tests.support.pause import ended_or_blocked
from tests.support.waiting import DEADLINE, backend

QUOTA = {
    "tokens_per_minute": 10_000,
    "quota": 10_000,
    "quota_unit": "tokens",
    "quota_window": "1 day",
}
Settling = Callable[[Calls, Attempt, str], Any]


def _settled(calls: Calls, attempt: Attempt, rate: str) -> Any:
    return calls.value("select trunkline.settle_job(%s, %s)", attempt.job, attempt.number)


def _called(calls: Calls, attempt: Attempt, rate: str) -> Any:
    """A call within the job takes over what its claim has charged of both limits."""
    return calls.value(
        "select granted from trunkline.acquire(%s, p_job => %s, p_attempt => %s)",
        rate,
        attempt.job,
        attempt.number,
    )


def _handed_back(calls: Calls, attempt: Attempt, rate: str) -> Any:
    return calls.batch("release", "w", [attempt], unstarted=True)


def _completed(calls: Calls, attempt: Attempt, rate: str) -> Any:
    return calls.batch("complete", "w", [attempt])


def _failed(calls: Calls, attempt: Attempt, rate: str) -> Any:
    return calls.batch("fail", "w", [attempt])


def waits_for(
    desk: Desk, rate: str, quota: str, first: Settling, second: Settling, *, later: str
) -> str:
    """Tell for whom the second waits, if somebody has settled the quota alone.

    For the first, if both begin with the rate; for that somebody, if both begin with the quota.
    """
    desk.enqueue(1)
    (attempt,) = desk.claim()
    desk.database.move_time(later)
    names = ("somebody", "first", "second")
    hands = {name: desk.database.connect("trunkline_worker", autocommit=False) for name in names}
    assert _called(Calls(hands["somebody"]), attempt, quota)

    def run(name: str, settling: Settling) -> None:
        with suppress(psycopg.errors.DeadlockDetected):
            settling(Calls(hands[name]), attempt, rate)
            hands[name].commit()

    with ThreadPoolExecutor(max_workers=2) as pool:
        one = pool.submit(run, "first", first)
        assert ended_or_blocked(desk.behind, hands["first"], one) == [backend(hands["somebody"])]
        other = pool.submit(run, "second", second)
        held_by = ended_or_blocked(desk.behind, hands["second"], other)
        hands["somebody"].commit()
        for future in (one, other):
            future.result(DEADLINE)
    return next(name for name in names if [backend(hands[name])] == held_by)


@pytest.mark.parametrize(
    ("first", "later"),
    [
        (_called, "0 seconds"),
        (_handed_back, "0 seconds"),
        (_completed, "0 seconds"),
        (_failed, "0 seconds"),
        # These count as late.
        (_completed, "30 seconds"),
        (_failed, "30 seconds"),
    ],
)
@pytest.mark.parametrize("turned", [False, True], ids=["rate first", "quota first"])
@pytest.mark.parametrize(("rate", "quota"), [("one", "two"), ("two", "one")])
def test_everybody_begins_with_the_same_limit(
    desk: Desk, rate: str, quota: str, first: Settling, later: str, *, turned: bool
) -> None:
    """Whatever their names are and in whatever order the task has them."""
    desk.limit(rate, tokens_per_minute=10_000).limit(quota, **QUOTA)
    limits = (quota, rate) if turned else (rate, quota)
    desk.task(*limits, cost={"tokens": 100})
    usual = waits_for(desk, rate, quota, _settled, _settled, later=later)
    assert usual in {"somebody", "first"}
    assert waits_for(desk, rate, quota, first, _settled, later=later) == usual

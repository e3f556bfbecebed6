"""Quotas that a job names beside the limit its handler asks for: every call counts there too."""

from typing import Any

import psycopg
import pytest

from tests.flow.conftest import Desk
from tests.flow.test_grants import acquire, settle, settle_job
from tests.support.calls import Attempt
from tests.support.internals import rows, usage

MONTH = {"quota_unit": "tokens", "quota_period": "month"}


def begin(desk: Desk, budget: int = 10_000, **cost: int) -> Attempt:
    """An attempt that was charged 100 tokens at a provider's limit and at its tenant's budget."""
    desk.limit("api", tokens_per_minute=100_000, concurrency=5)
    desk.limit("budget/{tenant}", quota=budget, **MONTH)
    desk.task("api", "budget/{tenant}", cost={"tokens": 100, **cost})
    desk.enqueue(1, tenant="acme")
    (attempt,) = desk.claim()
    return attempt


def spent(desk: Desk, name: str = "budget/acme") -> int:
    found: int = desk.operator.value("select spent from trunkline.quotas where name = %s", name)
    return found


def reserved(desk: Desk) -> int:
    found: int = desk.operator.value(
        "select reserved from trunkline.quotas where name = 'budget/acme'"
    )
    return found


def books(desk: Desk) -> Any:
    lines = 'select "limit", calls, requests, tokens, cost from trunkline.usage order by "limit"'
    return desk.operator.connection.execute(lines.encode()).fetchall()


@pytest.mark.parametrize("actual", [5000, 7, 100])
@pytest.mark.parametrize("later", ["0 seconds", "50 seconds"])
def test_the_first_call_settles_what_the_claim_charged(desk: Desk, actual: int, later: str) -> None:
    attempt = begin(desk)
    assert (spent(desk), reserved(desk)) == (100, 100)
    desk.database.move_time(later)
    grant = acquire(desk, attempt=attempt)
    assert grant.granted
    assert (spent(desk), reserved(desk)) == (100, 100)
    assert settle(desk, grant.grant_id, tokens=actual, cost=2) == "settled"
    assert settle(desk, grant.grant_id, tokens=1) == "already"
    assert settle_job(desk, attempt, tokens=1) == "already"
    desk.end([attempt])
    assert (spent(desk), reserved(desk)) == (actual, 0)
    assert books(desk) == [("api", 1, 1, actual, 2), ("budget/{tenant}", 1, 1, actual, 0)]


def test_further_calls_are_charged_and_settled_there_too(desk: Desk) -> None:
    attempt = begin(desk)
    first = acquire(desk, attempt=attempt)
    second = acquire(desk, attempt=attempt, tokens=300)
    assert (spent(desk), reserved(desk)) == (400, 400)
    assert settle(desk, second.grant_id, tokens=2000) == "settled"
    assert (spent(desk), reserved(desk)) == (2100, 100)
    assert settle(desk, first.grant_id, tokens=50) == "settled"
    assert settle(desk, second.grant_id, tokens=1) == "already"
    desk.end([attempt])
    assert spent(desk) == 2050
    # It is one slot of the provider's, held by the job, and none of the budget's.
    assert books(desk) == [("api", 2, 2, 2050, 0), ("budget/{tenant}", 2, 2, 2050, 0)]


@pytest.mark.parametrize("end", ["complete", "fail", "release"])
def test_an_attempt_that_ends_before_it_settles_keeps_the_estimates(desk: Desk, end: str) -> None:
    attempt = begin(desk)
    first = acquire(desk, attempt=attempt)
    assert acquire(desk, attempt=attempt, tokens=300).granted
    desk.end([attempt], end, **({"reason": "no more"} if end == "release" else {}))
    assert (spent(desk), reserved(desk)) == (400, 0)
    # What comes to be known later counts nevertheless (RF-56).
    assert settle(desk, first.grant_id, tokens=5000) == "settled"
    assert spent(desk) == 5300
    # A day later nobody will say it any more: the books have what was charged.
    desk.database.move_time("26 hours")
    desk.operator.value("select trunkline.sweep_buckets()")
    assert books(desk) == [("api", 2, 2, 5300, 0), ("budget/{tenant}", 2, 2, 5300, 0)]
    assert rows.count(desk.behind, "grants") == 0


def test_a_refused_call_takes_nothing_of_the_budget(desk: Desk) -> None:
    attempt = begin(desk)
    desk.set_limit("api", {}, "maintenance")
    desk.database.move_time("5 seconds")
    assert acquire(desk, attempt=attempt).reason == "maintenance"
    assert spent(desk) == 100
    desk.set_limit("api", {}, "active")
    grant = acquire(desk, attempt=attempt, tokens=40)
    assert spent(desk) == 40
    settle(desk, grant.grant_id, tokens=70)
    assert spent(desk) == 70


def test_a_spent_budget_stops_further_calls_and_a_raised_one_lets_them_go_on(desk: Desk) -> None:
    attempt = begin(desk, budget=1000)
    grant = acquire(desk, attempt=attempt)
    assert settle(desk, grant.grant_id, tokens=900) == "settled"
    assert acquire(desk, attempt=attempt, tokens=101).reason == "quota"
    assert spent(desk) == 900
    grant = acquire(desk, attempt=attempt, tokens=100)
    assert grant.granted
    refused = acquire(desk, attempt=attempt)
    assert (refused.granted, refused.reason, refused.grant_id) == (False, "quota", None)
    assert refused.free_at is not None
    desk.set_limit("budget/{tenant}", {"quota": 2000})
    assert acquire(desk, attempt=attempt, tokens=500).granted
    assert spent(desk) == 1500


def test_more_than_the_budget_ever_gives_is_refused(desk: Desk) -> None:
    attempt = begin(desk, budget=1000)
    with pytest.raises(psycopg.Error) as refusal:
        acquire(desk, attempt=attempt, tokens=1001)
    assert refusal.value.sqlstate == "TL033"
    assert desk.detail(refusal.value)["limit"] == "budget/{tenant}"


def test_rates_and_slots_in_addition_to_a_quota_are_charged_once(desk: Desk) -> None:
    """A quota of requests counts each call; a limit without one is charged at the claim alone."""
    desk.limit("api", requests_per_minute=100)
    desk.limit("calls", quota=50, quota_unit="requests", quota_window="1 day")
    desk.limit("rate", requests_per_minute=100, tokens_per_minute=1000, concurrency=3)
    desk.task("api", "calls", "rate", cost={"tokens": 10})
    desk.enqueue(1)
    (attempt,) = desk.claim()
    for _ in range(3):
        settle(desk, acquire(desk, attempt=attempt, tokens=10).grant_id, tokens=500)
    rate = desk.bucket("rate")
    assert (rate["in_use"], rate["requests_of_minute"], rate["tokens_of_minute"]) == (1, 1, 10)
    assert spent(desk, "calls") == 3
    assert desk.bucket("api")["requests_of_minute"] == 3


def test_limits_that_a_job_does_not_name_leave_its_budget_alone(desk: Desk) -> None:
    attempt = begin(desk)
    desk.limit("other", tokens_per_minute=1000)
    settle(desk, acquire(desk, "other", attempt=attempt, tokens=10).grant_id, tokens=900)
    assert spent(desk) == 100


def test_what_jobs_really_take_is_learned_for_the_budget_too(desk: Desk) -> None:
    """A provider's limit that counts no tokens learns nothing for the next job; its budget does."""
    desk.limit("api", concurrency=5).limit("budget/{tenant}", quota=10_000, **MONTH)
    desk.task("api", "budget/{tenant}", cost={"tokens": 100})
    for charged in (100, 700):
        desk.enqueue(1, tenant="acme")
        (attempt,) = desk.claim()
        grant = acquire(desk, attempt=attempt)
        assert grant.grant_id is not None
        assert usage.tokens_of_grant(desk.behind, grant.grant_id) == charged
        settle(desk, grant.grant_id, tokens=700)

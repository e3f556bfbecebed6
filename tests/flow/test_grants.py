"""Grants: capacity asked for by name, within a job or not, settled with what was really taken."""

from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.flow.conftest import Desk
from tests.support.calls import Attempt


class Answer(NamedTuple):
    granted: bool
    grant_id: UUID | None
    reason: str | None
    free_at: Any
    expires_at: Any


def acquire(
    desk: Desk,
    limit: str = "api",
    *,
    attempt: Attempt | None = None,
    keys: dict[str, str] | None = None,
    **cost: Any,
) -> Answer:
    job, number = (attempt.job, attempt.number) if attempt else (None, None)
    row = desk.worker.connection.execute(
        "select * from trunkline.acquire(%s, %s, %s, %s, %s)",
        (limit, Jsonb(cost), Jsonb(keys or {}), job, number),
    ).fetchone()
    return Answer(*row)  # type: ignore[misc]


def settle(desk: Desk, grant: UUID | None, **actual: float) -> str:
    answer: str = desk.worker.value(
        "select trunkline.settle(%s, %s)", grant, Jsonb(actual) if actual else None
    )
    return answer


def settle_job(desk: Desk, attempt: Attempt, **actual: float) -> str:
    answer: str = desk.worker.value(
        "select trunkline.settle_job(%s, %s, %s)", attempt.job, attempt.number, Jsonb(actual)
    )
    return answer


def test_a_grant_takes_from_every_part_and_settling_gives_the_slot_back(desk: Desk) -> None:
    """CP-54, CP-58: requests, tokens and a slot; released twice changes nothing the second time."""
    desk.limit("api", requests_per_minute=10, tokens_per_minute=5000, concurrency=1)
    grant = acquire(desk, tokens=1000)
    assert grant.granted
    assert (grant.reason, grant.free_at) == (None, None)
    bucket = desk.bucket("api")
    assert (bucket["in_use"], bucket["requests_of_minute"], bucket["tokens_of_minute"]) == (
        1,
        1,
        1000,
    )
    assert acquire(desk).reason == "concurrency"
    assert settle(desk, grant.grant_id) == "settled"
    assert acquire(desk).granted
    assert settle(desk, grant.grant_id) == "already"
    assert desk.bucket("api")["in_use"] == 1
    assert settle(desk, uuid4()) == "unknown"


def test_actuals_go_to_the_second_that_was_charged(desk: Desk) -> None:
    """CP-S08: 1000 estimated, 1500 taken: 1500 in that minute; settled later the new one stays."""
    desk.limit("api", tokens_per_minute=200_000)
    early, late = (acquire(desk, tokens=1000) for _ in range(2))
    assert settle(desk, early.grant_id, tokens=1500) == "settled"
    assert desk.bucket("api")["tokens_of_minute"] == 2500
    desk.database.move_time("70 seconds")
    assert desk.bucket("api")["tokens_of_minute"] == 0
    assert settle(desk, late.grant_id, tokens=9000) == "settled"
    assert desk.bucket("api")["tokens_of_minute"] == 0


def test_a_correction_is_counted_once_however_many_grants_follow(desk: Desk) -> None:
    """What whoever holds the bucket counts in is not counted again, and a sweep changes nothing."""
    desk.limit("api", tokens_per_minute=10_000, tokens_per_hour=100_000)
    for _ in range(3):
        assert settle(desk, acquire(desk, tokens=1000).grant_id, tokens=100) == "settled"
        desk.operator.value("select trunkline.sweep_buckets()")
    assert desk.bucket("api")["tokens_of_minute"] == 300
    assert desk.bucket("api")["tokens_of_hour"] == 300


def test_actuals_far_above_the_estimate_close_the_window(desk: Desk) -> None:
    desk.limit("api", tokens_per_minute=1000)
    assert settle(desk, acquire(desk, tokens=10).grant_id, tokens=50_000) == "settled"
    refused = acquire(desk, tokens=1)
    assert refused.reason == "tokens_per_minute"
    desk.database.move_time("63 seconds")
    assert acquire(desk, tokens=1).granted


def test_zero_is_zero_and_amounts_that_are_not_reported_stay(desk: Desk) -> None:
    """CP-60, CP-101: absent is unknown, and unknown stays as estimated."""
    desk.limit("api", tokens_per_minute=1000)
    settle(desk, acquire(desk, tokens=300).grant_id)
    settle(desk, acquire(desk, tokens=300).grant_id, tokens=0)
    assert desk.bucket("api")["tokens_of_minute"] == 300


def test_a_refusal_changes_no_window_and_is_counted(desk: Desk) -> None:
    """CP-56."""
    desk.limit("api", requests_per_minute=1)
    assert acquire(desk).granted
    before = desk.bucket("api")
    refused = acquire(desk)
    after = desk.bucket("api")
    assert refused.reason == "requests_per_minute"
    assert refused.free_at - after["refused_at"] > timedelta(seconds=59)
    assert after["requests_of_minute"] == before["requests_of_minute"] == 1
    assert (before["refused"], after["refused"]) == (0, 1)


@pytest.mark.parametrize(
    ("part", "cost"),
    [
        ("requests_per_hour", {}),
        ("tokens_per_minute", {"tokens": 1}),
        ("tokens_per_hour", {"tokens": 1}),
    ],
)
def test_the_refusal_names_the_part(desk: Desk, part: str, cost: dict[str, Any]) -> None:
    desk.limit("api", **{part: 1})
    assert acquire(desk, **cost).granted
    assert acquire(desk, **cost).reason == part


@pytest.mark.parametrize("status", ["maintenance", "disabled"])
def test_a_limit_that_is_off_grants_nothing_and_takes_back(desk: Desk, status: str) -> None:
    """CP-57, CP-58: not granted with that reason; a release works in every status."""
    desk.limit("api", concurrency=1)
    grant = acquire(desk)
    desk.set_limit("api", {}, status)
    assert acquire(desk).reason == status
    assert settle(desk, grant.grant_id) == "settled"
    desk.set_limit("api", {}, "active")
    assert acquire(desk).granted


def test_a_grant_that_nobody_settles_ends_by_itself(desk: Desk) -> None:
    """CP-59: a dead caller's slot comes back; what it was charged stays charged."""
    desk.limit("api", concurrency=1, tokens_per_hour=1000)
    assert acquire(desk, tokens=10).granted
    assert acquire(desk).reason == "concurrency"
    desk.database.move_time("301 seconds")
    assert acquire(desk, tokens=10).granted
    assert desk.bucket("api")["tokens_of_hour"] == 20


def test_old_grants_go_and_the_duty_reports_how_many_rows_went(desk: Desk) -> None:
    desk.limit("api", concurrency=20)
    grants = [acquire(desk).grant_id for _ in range(20)]
    desk.database.move_time("2 days")
    went = desk.operator.value("select trunkline.sweep_buckets()")
    assert went >= len(grants)
    assert {settle(desk, grant) for grant in grants} == {"unknown"}
    (rows, error) = desk.operator.connection.execute(
        "select rows, last_error from trunkline.duties where duty = 'sweep_buckets'"
    ).fetchall()[0]
    assert (rows, error) == (went, None)


def test_a_jobs_grant_lasts_as_long_as_its_attempt(desk: Desk) -> None:
    """However long that is, and no longer, however it ends."""
    desk.limit("api", concurrency=1).task(task="work", lease="20 minutes")
    desk.enqueue(1)
    (attempt,) = desk.claim()
    assert acquire(desk, attempt=attempt).granted
    desk.database.move_time("10 minutes")
    assert acquire(desk).reason == "concurrency"
    desk.end([attempt])
    assert acquire(desk).granted
    with pytest.raises(psycopg.Error) as refusal:
        acquire(desk, attempt=attempt)
    assert refusal.value.sqlstate == "TL009"


def test_what_the_claim_has_taken_is_the_grant(desk: Desk) -> None:
    """Decision 3 of the requirements: acquiring what is granted already returns that."""
    desk.limit("api", requests_per_minute=5, concurrency=1, tokens_per_minute=1000).task(
        "api", cost={"tokens": 400}
    )
    desk.enqueue(1)
    (attempt,) = desk.claim()
    grant = acquire(desk, attempt=attempt, tokens=400)
    assert grant.granted
    assert desk.bucket("api")["requests_of_minute"] == 1
    assert settle(desk, grant.grant_id, tokens=100) == "settled"
    assert desk.bucket("api")["tokens_of_minute"] == 100
    assert settle_job(desk, attempt, tokens=1) == "already"
    assert acquire(desk, attempt=attempt, tokens=400).granted, "a second call needs no other slot"
    assert desk.bucket("api")["requests_of_minute"] == 2
    assert desk.bucket("api")["in_use"] == 1


def test_a_call_later_than_the_start_is_charged_at_the_time_of_the_call(desk: Desk) -> None:
    """The provider sees it then, so that is the window it must fit."""
    desk.limit("api", requests_per_minute=1).task("api")
    desk.enqueue(1)
    (attempt,) = desk.claim()
    desk.database.move_time("50 seconds")
    assert acquire(desk, attempt=attempt).granted
    desk.database.move_time("30 seconds")
    assert desk.bucket("api")["requests_of_minute"] == 1
    assert acquire(desk).reason == "requests_per_minute"


def test_settling_a_job_corrects_all_of_its_limits_once(desk: Desk) -> None:
    desk.limit("api", tokens_per_minute=1000).limit("mine/{tenant}", tokens_per_hour=5000)
    desk.task("api", "mine/{tenant}", cost={"tokens": 800})
    desk.enqueue(2, tenant="acme")
    (attempt,) = desk.claim()
    assert settle_job(desk, attempt, tokens=100, cost=0.25) == "settled"
    assert settle_job(desk, attempt, tokens=1) == "already"
    assert desk.bucket("api")["tokens_of_minute"] == 100
    assert desk.bucket("mine/acme")["tokens_of_hour"] == 100
    assert len(desk.claim()) == 1, "what was given back can be used"
    desk.end([attempt])
    assert settle_job(desk, attempt, tokens=1) == "unknown"


def test_the_usage_ledger_has_every_job_tenant_and_limit(desk: Desk) -> None:
    desk.limit("api", tokens_per_minute=10_000).task("api", cost={"tokens": 500})
    for tenant in ("acme", "acme", "zoo"):
        desk.enqueue(1, tenant=tenant)
    settled, failed, never = desk.claim()
    settle_job(desk, settled, tokens=120, cost=0.5)
    desk.end([settled, never])
    desk.end([failed], "fail")
    books = "select tenant, calls, tokens, cost from trunkline.usage order by tenant"
    lines = [("acme", 2, 620, 0.5), ("zoo", 1, 500, 0)]
    for _ in range(2):
        assert desk.operator.connection.execute(books.encode()).fetchall() == lines
        # Put together by day it is the same.
        desk.operator.value("select trunkline.sweep_buckets()")


def test_money_is_booked_once_and_at_the_provider(desk: Desk) -> None:
    desk.limit("fair:work/{tenant}").limit("api", tokens_per_minute=1000).limit(
        "all", concurrency=9
    )
    desk.task("fair:work/{tenant}", "api", "all", cost={"tokens": 10})
    desk.enqueue(1, tenant="acme")
    settle_job(desk, desk.claim()[0], tokens=5, cost=2)
    costs = 'select "limit", cost from trunkline.usage order by 1'
    assert desk.operator.connection.execute(costs.encode()).fetchall() == [
        ("all", 0),
        ("api", 2),
        ("fair:work/{tenant}", 0),
    ]


@pytest.mark.parametrize(
    ("cost", "code"),
    [({"tokens": -1}, "TL032"), ({"pages": 1}, "TL032"), ({"tokens": 1001}, "TL033")],
)
def test_nonsense_is_refused(desk: Desk, cost: dict[str, Any], code: str) -> None:
    desk.limit("api", tokens_per_minute=1000)
    with pytest.raises(psycopg.Error) as refusal:
        acquire(desk, **cost)
    assert refusal.value.sqlstate == code
    assert acquire(desk, tokens=1000).granted


def test_an_unknown_limit_is_named(desk: Desk) -> None:
    """CP-57."""
    with pytest.raises(psycopg.Error) as refusal:
        acquire(desk, "openai/gpt-9")
    assert refusal.value.sqlstate == "TL030"
    assert "openai/gpt-9" in str(refusal.value.diag.message_detail)

"""A limit of a filled-in name, created while a job waits uncommitted under the name with keys.

The bucket then has a row for each of the two limits. The one created last applies everywhere, once.
"""

from typing import Any
from uuid import UUID

import pytest

from tests.flow.conftest import Desk
from tests.support.calls import Calls

TEMPLATE = {
    "tokens_per_minute": 900,
    "quota": 900,
    "quota_period": "day",
    "quota_unit": "tokens",
    "breaker_failures": 9,
}
EXACT = {
    "tokens_per_minute": 100,
    "quota": 500,
    "quota_period": "day",
    "quota_unit": "tokens",
    "breaker_failures": 1,
    "breaker_share": 0,
}


def rows(desk: Desk, query: str, *arguments: Any) -> list[tuple[Any, ...]]:
    return desk.operator.connection.execute(query.encode(), arguments or None).fetchall()


@pytest.fixture
def raced(desk: Desk) -> Desk:
    """Two jobs of one key were not committed when the limit of that key was created."""
    desk.database.draw(0.5)
    desk.database.move_to_noon()
    desk.limit("key/{key}", **TEMPLATE).task("key/{key}", cost={"tokens": 60})
    sessions = [desk.database.connect("trunkline_producer", autocommit=False) for _ in range(2)]
    for session, name in zip(sessions, ["first", "second"], strict=True):
        Calls(session).enqueue(payload={"key": "a"}, correlation_id=name)
    desk.limit("key/a", **EXACT)
    for session in sessions:
        session.commit()
    return desk


@pytest.fixture
def two(raced: Desk) -> Desk:
    """A call asks by the name, so that the bucket is known under both limits."""
    grant = raced.worker.value("select grant_id from trunkline.acquire('key/a')")
    raced.worker.value("select trunkline.settle(%s, %s::jsonb)", grant, '{"requests": 0}')
    return raced


def job(desk: Desk, name: str) -> UUID:
    found: UUID = desk.operator.value(
        "select job_id from trunkline.jobs where correlation_id = %s", name
    )
    return found


def test_views_show_the_bucket_once_with_the_newest_limit(two: Desk) -> None:
    assert len(two.claim(1)) == 1
    assert rows(two, 'select name, "limit", tokens_of_minute, waiting from trunkline.buckets') == [
        ("key/a", "key/a", 60, 1)
    ]
    assert rows(two, 'select name, "limit", quota, spent from trunkline.quotas order by quota') == [
        ("key/a", "key/a", 500, 60),
        ("key/{key}", "key/{key}", 900, 0),
    ]
    assert rows(two, 'select name, "limit", waiting from trunkline.breakers') == [
        ("key/a", "key/a", 1)
    ]
    assert rows(
        two,
        "select name, buckets, tokens_of_minute, waiting, spent from trunkline.limits"
        " order by name",
    ) == [("key/a", 1, 60, 1, 60), ("key/{key}", 0, 0, 0, 0)]


def test_the_newest_limit_holds_back_every_job(two: Desk) -> None:
    """60 tokens of 100 are charged: another 60 do not fit, though the first limit has 900."""
    started = [row.correlation_id for row in two.worker.claim("w", 10).rows]
    assert len(started) == 1
    [waiting] = {"first", "second"} - set(started)
    explained = rows(two, "select reason, detail from trunkline.explain(%s)", job(two, waiting))
    [detail] = [detail for reason, detail in explained if reason == "limit"]
    assert (detail["limit"], detail["tokens_left"]) == ("key/a", 40)


def test_a_breaker_has_one_state_and_one_name(two: Desk) -> None:
    two.end(two.claim(1), "fail", retryable=[False])
    assert rows(two, 'select name, "limit", state, failures from trunkline.breakers') == [
        ("key/a", "key/a", "open", 1)
    ]
    detail = two.operator.value(
        "select detail from trunkline.health() where \"check\" = 'breakers'"
    )
    assert detail == {"open": ["key/a"]}
    [name] = two.operator.value(
        "select array_agg(correlation_id) from trunkline.jobs where state = 'ready'"
    )
    explained = rows(two, "select reason, detail from trunkline.explain(%s)", job(two, name))
    assert [detail["breaker"] for reason, detail in explained if reason == "breaker"] == ["key/a"]
    assert two.operator.value("select trunkline.reset_breaker('key/a')") == 1
    assert two.operator.value("select trunkline.trip_breaker('key/a')") is not None


def test_the_ledger_has_each_job_under_one_name(two: Desk) -> None:
    [attempt] = two.claim(1)
    two.worker.value(
        "select trunkline.settle_job(%s, 1, %s::jsonb)", attempt.job, '{"tokens": 7, "cost": 2}'
    )
    used = 'select "limit", name, calls, tokens, cost from trunkline.usage_of_job(%s)'
    assert rows(two, used, attempt.job) == [("key/a", "key/a", 1, 7, 2)]
    assert rows(two, 'select "limit", calls, tokens, cost from trunkline.usage') == [
        ("key/a", 1, 7, 2)
    ]


def test_the_duty_assigns_the_bucket_to_the_limit_of_its_name(raced: Desk) -> None:
    assert raced.bucket("key/a")["limit"] == "key/{key}"
    raced.operator.run_duty("sweep_buckets()")
    assert raced.bucket("key/a")["limit"] == "key/a"


def test_a_job_that_no_longer_fits_names_the_limit_once(two: Desk) -> None:
    two.operator.run_duty("sweep_buckets()")
    two.limit("key/a", tokens_per_minute=59)
    blocked = rows(
        two,
        "select e.detail ->> 'limit', (e.detail ->> 'most')::integer from trunkline.events as e"
        " where e.kind = 'set_aside'",
    )
    assert blocked == [("key/a", 59)] * 2
    two.limit("key/{key}", tokens_per_minute=1)
    two.limit("key/a", tokens_per_minute=60)
    assert len(two.claim(2)) == 1, "the limit with keys does not apply to this name"


def test_a_grant_by_name_is_of_the_newest_limit(two: Desk) -> None:
    [[granted, reason]] = two.worker.connection.execute(
        "select granted, reason from trunkline.acquire('key/a', '{\"tokens\": 100}')"
    ).fetchall()
    assert (granted, reason) == (True, None)
    assert two.operator.value("select tokens_of_minute from trunkline.buckets") == 100


def test_the_duty_counts_failures_that_recovery_left_by_the_newest_limit(two: Desk) -> None:
    """An attempt is lost while another session holds the counting of failures."""
    two.claim(1)
    with two.database.connect("trunkline_operator", autocommit=False) as holding:
        holding.execute("select trunkline.trip_breaker('key/a')")
        two.database.move_time("1 day")
        assert len(two.worker.reclaim()) == 1
        holding.rollback()
    assert two.operator.value("select state from trunkline.breakers") == "closed"
    two.operator.run_duty("sweep_buckets()")
    assert two.operator.value("select state from trunkline.breakers") == "open"

"""What jobs of a task turned out to take is what the next ones are charged, unless they say it."""

from typing import Any

import pytest

from tests.flow.conftest import Desk
from tests.flow.test_grants import acquire, settle, settle_job
from tests.support.calls import Attempt
from tests.support.internals import chance, usage


def learned(desk: Desk, bucket: str, *, tokens: int, units: int = 0) -> None:
    usage.learn(desk.behind, "work", bucket, tokens=tokens, units=units)


def need(desk: Desk, **fields: Any) -> list[int]:
    """What a job will be charged: requests, tokens, units; in a batch the same."""
    alone = desk.producer.enqueue(**fields).job_id
    (batch,) = desk.producer.enqueue_many([{"task": "work", **fields}])
    one, other = usage.costs_of_waiting(desk.behind, alone, batch.job_id)
    assert one is not None
    assert one == other
    return list(one)


def test_what_was_learned_goes_before_the_tasks_cost(desk: Desk) -> None:
    """RF-59: the task's own number is only a first guess."""
    desk.limit("api", tokens_per_minute=10_000).task("api", cost={"tokens": 500, "requests": 2})
    assert need(desk) == [2, 500, 0]
    learned(desk, "api", tokens=1234, units=8)
    assert need(desk) == [2, 1234, 8]


def test_the_cost_of_a_job_takes_precedence_over_the_estimate(desk: Desk) -> None:
    desk.limit("api", tokens_per_minute=10_000).task("api")
    learned(desk, "api", tokens=1234)
    assert need(desk, cost={"tokens": 7}) == [1, 7, 0]
    assert need(desk, cost={}) == [1, 0, 0]


def test_each_key_has_learned_for_itself(desk: Desk) -> None:
    desk.limit("model/{model}", quota=10_000).task("model/{model}", cost={"units": 5})
    learned(desk, "model/a", tokens=0, units=900)
    assert need(desk, payload={"model": "a"}) == [1, 0, 900]
    assert need(desk, payload={"model": "b"}) == [1, 0, 5]


@pytest.mark.parametrize("second", ["tokens_per_hour", "tokens_per_minute"])
def test_it_is_cut_to_what_fits(desk: Desk, second: str) -> None:
    """One very large job does not make the next ones impossible."""
    desk.limit("api", tokens_per_minute=1000).limit("all", **{second: 600, "quota": 100})
    desk.task("api", "all")
    learned(desk, "api", tokens=5000, units=5000)
    assert need(desk) == [1, 600, 95]


def test_the_first_limit_that_counts_such_things_decides(desk: Desk) -> None:
    """A limit of slots learns nothing about tokens."""
    desk.limit("slots", concurrency=5).limit("api", tokens_per_minute=10_000)
    desk.limit("all", tokens_per_minute=10_000).task("slots", "api", "all")
    for bucket, tokens in (("slots", 1), ("api", 22), ("all", 333)):
        learned(desk, bucket, tokens=tokens)
    assert need(desk) == [1, 22, 0]


def estimates(desk: Desk) -> list[tuple[int, int]]:
    return usage.estimates(desk.behind)


def take(desk: Desk, **actual: int) -> None:
    """Run a job that takes so much."""
    desk.enqueue(1)
    (attempt,) = desk.claim()
    assert settle_job(desk, attempt, **actual) == "settled"
    desk.end([attempt])


def test_the_first_sets_it_for_each_key(desk: Desk) -> None:
    desk.limit("api/{model}", tokens_per_minute=1_000_000).task("api/{model}", cost={"tokens": 9})
    desk.database.draw(0.5)
    for model, tokens in (("small", 100), ("large", 5000), ("small", 900)):
        desk.enqueue(1, payload={"model": model})
        settle_job(desk, desk.claim()[0], tokens=tokens)
    assert estimates(desk) == [(100, 0), (5000, 0)]


@pytest.mark.parametrize(
    ("number", "after"),
    [(0.0, (190, 46)), (0.0099, (190, 46)), (0.01, (100, 50)), (0.9, (100, 50))],
)
def test_one_of_a_hundred_moves_it_by_a_tenth(
    desk: Desk, number: float, after: tuple[int, int]
) -> None:
    """RF-59: 0.9 of the old and 0.1 of what it was, with a probability of 0.01."""
    desk.limit("api", tokens_per_minute=1_000_000, quota=1_000_000, quota_unit="pages").task("api")
    desk.database.draw(0.5)
    take(desk, tokens=100, units=50)
    desk.database.draw(number)
    take(desk, tokens=1000, units=10)
    assert estimates(desk) == [after]


def test_the_draw_is_a_draw(desk: Desk) -> None:
    """Nobody replaced it for good."""
    low = [number for number in chance.draws(desk.behind, 999) if number < 0.5]
    assert 300 < len(low) < 700


def test_what_is_not_known_yet_is_set_without_a_draw(desk: Desk) -> None:
    """Tokens and units each for themselves: the first that is told of either sets it."""
    desk.limit("api", tokens_per_minute=1_000_000, quota=1_000_000, quota_unit="pages")
    desk.task("api", cost={"tokens": 77, "units": 5})
    desk.database.draw(0.5)
    take(desk, tokens=100)
    assert estimates(desk) == [(100, 0)]
    # What nobody said is still as the task says.
    assert need(desk) == [1, 100, 5]
    for attempt in desk.claim():
        desk.end([attempt])
    take(desk, units=50)
    assert estimates(desk) == [(100, 50)]
    take(desk, tokens=0, units=0)
    desk.database.draw(0.0)
    take(desk, tokens=0)
    assert estimates(desk) == [(100, 50)]


def test_grants_teach_as_well(desk: Desk) -> None:
    desk.limit("api", tokens_per_minute=1_000_000).task("api")
    desk.database.draw(0.0)
    desk.enqueue(1)
    (attempt,) = desk.claim()
    for tokens in (1000, 2000):
        settle(desk, acquire(desk, attempt=attempt, tokens=1).grant_id, tokens=tokens)
    assert estimates(desk) == [(1100, 0)]


def tokens_of_call(desk: Desk, attempt: Attempt, limit: str = "api", **cost: Any) -> int:
    """What a call within a job is charged, and leaves charged."""
    before: int = desk.bucket(limit)["tokens_of_minute"] if known(desk, limit) else 0
    assert acquire(desk, limit, attempt=attempt, **cost).granted
    after: int = desk.bucket(limit)["tokens_of_minute"]
    return after - before


def known(desk: Desk, name: str) -> bool:
    found = "select exists (select from trunkline.buckets where name = %s)"
    return bool(desk.operator.value(found, name))


def test_further_calls_that_do_not_say_their_tokens_are_charged_like_the_job(desk: Desk) -> None:
    """Charged as nothing, calls at once would pass the limit together."""
    desk.limit("api", tokens_per_minute=1_000).task("api", cost={"tokens": 300})
    desk.enqueue(1)
    (attempt,) = desk.claim()
    assert tokens_of_call(desk, attempt) == 0, "the claim has charged it"
    assert tokens_of_call(desk, attempt) == 300
    assert tokens_of_call(desk, attempt, tokens=7) == 7
    assert tokens_of_call(desk, attempt, tokens=0) == 0
    assert tokens_of_call(desk, attempt) == 300
    assert not acquire(desk, attempt=attempt).granted


def test_what_calls_took_is_what_those_after_them_are_charged(desk: Desk) -> None:
    desk.limit("api", tokens_per_minute=1_000).task("api", cost={"tokens": 300})
    desk.limit("other", tokens_per_minute=100)
    desk.enqueue(1)
    (attempt,) = desk.claim()
    settle(desk, acquire(desk, attempt=attempt).grant_id, tokens=50)
    assert tokens_of_call(desk, attempt) == 50
    # Of another limit nothing is known before somebody has told.
    assert tokens_of_call(desk, attempt, "other") == 0
    settle(desk, acquire(desk, "other", attempt=attempt).grant_id, tokens=60)
    assert not acquire(desk, "other", attempt=attempt).granted
    # Too much for the limit, it is cut to what fits, so that it is waited for and not refused.
    desk.limit("other", tokens_per_minute=40)
    refused = acquire(desk, "other", attempt=attempt)
    assert (refused.granted, refused.reason) == (False, "tokens_per_minute")
    desk.database.move_time("2 minutes")
    assert tokens_of_call(desk, attempt, "other") == 40


def test_outside_of_jobs_calls_take_what_they_say(desk: Desk) -> None:
    """There is no task that could have learned."""
    desk.limit("api", tokens_per_minute=1_000)
    assert acquire(desk).granted
    assert desk.bucket("api")["tokens_of_minute"] == 0

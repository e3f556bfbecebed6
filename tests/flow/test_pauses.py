"""What a provider says is true for everybody: Retry-After and what remains."""

from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.flow.conftest import Desk
from tests.flow.test_grants import acquire


def observe(desk: Desk, limit: str, keys: dict[str, str] | None = None, **observed: Any) -> Any:
    return desk.worker.value(
        "select trunkline.observe_limit(%s, %s, %s)", limit, Jsonb(observed), Jsonb(keys or {})
    )


def register_worker(desk: Desk) -> None:
    desk.worker.value("select trunkline.register_worker(p_worker => 'w')")


def test_a_429_pauses_that_key_alone_for_everyone(desk: Desk) -> None:
    desk.limit("api/{model}", requests_per_minute=100).task("api/{model}")
    held = desk.enqueue(1, payload={"model": "a"})
    other = desk.enqueue(1, payload={"model": "b"})
    register_worker(desk)
    until = observe(desk, "api/{model}", {"model": "a"}, retry_after=20, reason="429")
    assert desk.claimed() == other
    bucket = desk.bucket("api/a")
    assert (bucket["paused_until"], bucket["pause_reason"]) == (until, "429")
    assert acquire(desk, "api/{model}", keys={"model": "a"})._replace(free_at=None) == (
        False, None, "paused", None, None,
    )  # fmt: skip
    explained = desk.operator.connection.execute(
        "select reason, until, detail ->> 'pause_reason' from trunkline.explain(%s)", held
    ).fetchone()
    assert explained == ("limit", until, "429")
    desk.database.move_time("21 seconds")
    assert desk.claimed() == held


def test_a_worker_that_sleeps_wakes_when_the_hold_is_over(desk: Desk) -> None:
    desk.limit("api", requests_per_minute=100).task("api")
    desk.enqueue(1)
    register_worker(desk)
    until = observe(desk, "api", retry_after=30)
    assert desk.claim() == []
    assert desk.worker.value("select trunkline.sleep('w', null)") == until


def test_a_hold_is_lifted_and_never_shortened_by_another(desk: Desk) -> None:
    desk.limit("api", requests_per_minute=100).task("api")
    desk.enqueue(1)
    long = observe(desk, "api", retry_after=600)
    assert observe(desk, "api", retry_after=5) == long
    assert desk.claim() == []
    assert observe(desk, "api", retry_after=0) is None
    assert len(desk.claim()) == 1


def test_an_absurd_retry_after_is_believed_up_to_an_hour(desk: Desk) -> None:
    desk.limit("api", requests_per_minute=100).task("api")
    desk.enqueue(1)
    observe(desk, "api", retry_after=10**9)
    desk.database.move_time("3601 seconds")
    assert len(desk.claim()) == 1


def test_nothing_remaining_holds_until_the_reset(desk: Desk) -> None:
    desk.limit("api", requests_per_minute=100).task("api")
    desk.enqueue(1)
    observe(desk, "api", remaining_requests=0, reset_requests=7)
    assert desk.claim() == []
    desk.database.move_time("8 seconds")
    assert len(desk.claim()) == 1


def test_fewer_remaining_than_we_knew_lowers_the_window_until_the_reset(desk: Desk) -> None:
    """Somebody else uses the same key."""
    desk.limit("api", requests_per_minute=100, tokens_per_minute=10_000).task("api")
    desk.enqueue(50)
    observe(desk, "api", remaining_requests=3, reset_requests=20, remaining_tokens=9_000)
    assert len(desk.claim()) == 3
    assert desk.claim() == []
    desk.database.move_time("22 seconds")
    assert len(desk.claim()) == 47


@pytest.mark.parametrize(
    ("parts", "observed", "claimed"),
    [
        # An hour of tokens says nothing about requests, and the other way round.
        ({"tokens_per_hour": 100_000}, {"remaining_requests": 3}, 3),
        ({"requests_per_hour": 1000}, {"remaining_tokens": 30}, 3),
        ({"quota": 10**6, "quota_unit": "tokens"}, {"remaining_requests": 3}, 3),
        # Of the same kind it could not be forgotten in time.
        ({"requests_per_hour": 1000}, {"remaining_requests": 3}, 50),
        ({"tokens_per_hour": 100_000}, {"remaining_tokens": 30}, 50),
    ],
)
def test_an_hour_stands_in_the_way_of_its_own_kind_alone(
    desk: Desk, parts: dict[str, Any], observed: dict[str, Any], claimed: int
) -> None:
    desk.limit("api", requests_per_minute=100, tokens_per_minute=10_000, **parts)
    desk.task("api", cost={"tokens": 10})
    desk.enqueue(50)
    observe(desk, "api", **observed, reset_requests=20, reset_tokens=20)
    assert len(desk.claim()) == claimed
    desk.database.move_time("22 seconds")
    assert len(desk.claim()) == 50 - claimed


@pytest.mark.parametrize(
    "observed",
    [{"retry_after": -1}, {"retry_after": "soon"}, {"remaining": 3}, {"reset_tokens": 10**13}],
)
def test_nonsense_is_refused(desk: Desk, observed: dict[str, Any]) -> None:
    desk.limit("api", requests_per_minute=100)
    with pytest.raises(psycopg.Error) as refusal:
        observe(desk, "api", **observed)
    assert refusal.value.sqlstate == "TL028"

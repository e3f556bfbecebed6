"""A settlement counts exactly once, also if its transaction is open while others charge."""

from contextlib import suppress
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.flow.conftest import Desk
from tests.flow.test_grants import acquire
from tests.support.calls import Attempt, Calls
from tests.support.waiting import until

# Room for two jobs and a call, and for a third job only after the first has settled for less.
ROOM = 1100
PARTS: dict[str, dict[str, Any]] = {
    "tokens_per_minute": {"tokens_per_minute": ROOM},
    "tokens_per_hour": {"tokens_per_hour": ROOM},
    "quota": {
        "quota": ROOM,
        "quota_unit": "tokens",
        "quota_window": "1 day",
        "quota_buffer": 1,
        "quota_refuses": False,
    },
}


def spent(desk: Desk, part: str) -> int:
    if part == "quota":
        found: int = desk.operator.value("select spent from trunkline.quotas where name = 'api'")
        return found
    return int(desk.bucket("api")[part.replace("_per_", "_of_")])


def prepare(desk: Desk, part: str) -> list[Attempt]:
    desk.database.draw(0.5)
    desk.limit("api", **PARTS[part]).task("api", cost={"tokens": 400})
    desk.enqueue(4)
    attempts = desk.claim()
    assert len(attempts) == 2
    return attempts


def settle(connection: psycopg.Connection[Any], attempt: Attempt, tokens: int) -> None:
    answer = Calls(connection).value(
        "select trunkline.settle_job(%s, %s, %s)",
        attempt.job,
        attempt.number,
        Jsonb({"tokens": tokens}),
    )
    assert answer == "settled"


def become_oldest(desk: Desk, connection: psycopg.Connection[Any]) -> None:
    """Wait until every older transaction has ended, so that this one marks the bound.

    Other tests share the server. If one of them keeps a transaction open for long, go on: what is
    tried then is easier, and has to work as well.
    """
    oldest = "select pg_snapshot_xmin(pg_current_snapshot()) = %s::xid8"
    mine = Calls(connection).value("select pg_current_xact_id()::text")
    with suppress(AssertionError):
        until(lambda: desk.operator.value(oldest, mine), "older ones have ended", deadline=60)


def check(desk: Desk, part: str) -> None:
    """Of 950 that were charged, 300 came back: a third job fits, and 50 more."""
    assert spent(desk, part) == 650
    desk.operator.value("select trunkline.sweep_buckets()")
    assert spent(desk, part) == 650
    assert len(desk.claim()) == 1
    assert spent(desk, part) == 1050
    assert not acquire(desk, tokens=51).granted
    assert acquire(desk, tokens=50).granted
    assert spent(desk, part) == ROOM
    desk.operator.value("select trunkline.sweep_buckets()")
    assert spent(desk, part) == ROOM
    assert not acquire(desk, tokens=1).granted


@pytest.mark.parametrize("part", PARTS)
def test_a_settlement_open_while_others_charge_counts_when_it_commits(
    desk: Desk, part: str
) -> None:
    """Its transaction is the oldest that runs when the call is charged."""
    first, _ = prepare(desk, part)
    settling = desk.database.connect("trunkline_worker", autocommit=False)
    settle(settling, first, 100)
    become_oldest(desk, settling)
    assert acquire(desk, tokens=150).granted
    assert spent(desk, part) == 950
    desk.operator.value("select trunkline.sweep_buckets()")
    settling.commit()
    check(desk, part)


@pytest.mark.parametrize("part", PARTS)
def test_a_settlement_waits_for_no_other(desk: Desk, part: str) -> None:
    """Also for the first two of a task, of which both know what its calls take."""
    first, second = prepare(desk, part)
    settling = desk.database.connect("trunkline_worker", autocommit=False)
    settle(settling, first, 200)
    become_oldest(desk, settling)
    # Only a failing test takes it.
    desk.worker.connection.execute("set lock_timeout = '60s'")
    settle(desk.worker.connection, second, 300)
    assert acquire(desk, tokens=150).granted
    assert spent(desk, part) == 850
    settling.commit()
    check(desk, part)


def test_a_settlement_that_moves_the_estimate_waits_for_no_other(desk: Desk) -> None:
    """Every call is sampled here: two at once leave the estimate to one of them."""
    desk.database.draw(0.0)
    desk.limit("api", tokens_per_hour=10_000).task("api", cost={"tokens": 400})
    desk.enqueue(3)
    first, second, third = desk.claim()
    settle(desk.worker.connection, first, 100)
    settling = desk.database.connect("trunkline_worker", autocommit=False)
    settle(settling, second, 200)
    # Only a failing test takes it.
    desk.worker.connection.execute("set lock_timeout = '60s'")
    settle(desk.worker.connection, third, 300)
    settling.commit()
    assert spent(desk, "tokens_per_hour") == 600


@pytest.mark.parametrize("part", PARTS)
def test_a_settlement_and_a_charge_of_one_transaction_count_once_each(
    desk: Desk, part: str
) -> None:
    first, _ = prepare(desk, part)
    both = desk.database.connect("trunkline_worker", autocommit=False)
    settle(both, first, 100)
    become_oldest(desk, both)
    assert Calls(both).value("select granted from trunkline.acquire('api', '{\"tokens\": 150}')")
    both.commit()
    check(desk, part)


@pytest.mark.parametrize("part", PARTS)
def test_a_settlement_that_is_rolled_back_counts_nothing(desk: Desk, part: str) -> None:
    first, _ = prepare(desk, part)
    settling = desk.database.connect("trunkline_worker", autocommit=False)
    settle(settling, first, 100)
    become_oldest(desk, settling)
    assert acquire(desk, tokens=150).granted
    settling.rollback()
    assert spent(desk, part) == 950
    settle(desk.worker.connection, first, 100)
    check(desk, part)


@pytest.mark.parametrize("part", PARTS)
def test_a_late_settlement_opens_a_limit_that_was_spent(desk: Desk, part: str) -> None:
    """Claims pass a spent limit by, until something is given back."""
    first, _ = prepare(desk, part)
    settling = desk.database.connect("trunkline_worker", autocommit=False)
    settle(settling, first, 0)
    become_oldest(desk, settling)
    assert acquire(desk, tokens=ROOM - 800).granted
    assert desk.claim() == []
    settling.commit()
    assert len(desk.claim()) == 1
    assert spent(desk, part) == ROOM


def test_a_late_settlement_ends_the_back_pressure(desk: Desk) -> None:
    """New jobs are deferred while more than seven tenths of the minute are taken."""
    first, _ = prepare(desk, "tokens_per_minute")
    desk.limit("api", backpressure_threshold=0.7)
    settling = desk.database.connect("trunkline_worker", autocommit=False)
    settle(settling, first, 100)
    become_oldest(desk, settling)
    assert acquire(desk, tokens=150).granted
    assert desk.producer.enqueue().state == "scheduled"
    settling.commit()
    assert desk.producer.enqueue().state == "ready"


@pytest.mark.parametrize(
    ("part", "more"),
    [
        ("concurrency", {}),
        ("concurrency", {"requests_per_minute": 1000}),
        ("requests_per_minute", {}),
        ("requests_per_minute", {"concurrency": 1000}),
        ("requests_per_hour", {}),
    ],
)
def test_two_claims_of_one_transaction_count_once_each(
    desk: Desk, part: str, more: dict[str, int]
) -> None:
    """The first takes its part beside others, the second holds the limit."""
    used = {"concurrency": "in_use"}.get(part, part.replace("_per_", "_of_"))
    desk.limit("api", **{part: 64}, **more).task("api")
    desk.enqueue(100)
    both = desk.database.connect("trunkline_worker", autocommit=False)
    assert len(Calls(both).claim("w", 2).rows) == 2
    become_oldest(desk, both)
    assert len(Calls(both).claim("w", 20).rows) == 20
    both.commit()
    assert desk.bucket("api")[used] == 22
    assert len(desk.claim(3)) == 3
    assert desk.bucket("api")[used] == 25
    assert len(desk.claim()) == 39
    assert desk.claim() == []

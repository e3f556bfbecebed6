"""Jobs that are set aside count as waiting, can be changed, raise an alarm, and may end dead."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from threading import Event
from typing import Any

import psycopg
import pytest

from tests.flow.conftest import Desk
from tests.flow.test_misfits import LARGE, SMALL, aside, dead, declare, health, mixed, reason, sweep
from tests.flow.test_woken import sleep
from tests.support.calls import Attempt, Calls
from tests.support.ear import Ear
from tests.support.waiting import together, until


def test_a_job_that_somebody_has_locked_is_set_aside_or_freed_later(desk: Desk) -> None:
    desk.limit("api", tokens_per_minute=1000).task("api")
    held, other = desk.enqueue(2, cost=LARGE)
    with desk.behind.transaction():
        desk.behind.execute("select trunkline.reprioritise(%s, 1)", (held,))
        desk.limit("api", tokens_per_minute=900)
        assert aside(desk) == (2, 1)
    sweep(desk)
    assert aside(desk) == (2, 2)
    with desk.behind.transaction():
        desk.behind.execute("select trunkline.reprioritise(%s, 2)", (held,))
        desk.limit("api", tokens_per_minute=2000)
        assert aside(desk) == (2, 1)
        assert desk.claimed() == [other]
    sweep(desk)
    assert desk.claimed() == [held]


def test_jobs_of_a_bucket_that_a_claim_holds_are_freed_by_the_duty(desk: Desk) -> None:
    desk.limit("api", tokens_per_minute=1000, concurrency=5).task("api")
    (large,) = desk.enqueue(1, cost=LARGE)
    desk.limit("api", tokens_per_minute=900)
    desk.enqueue(1, cost=SMALL)
    claim = desk.database.connect("trunkline_worker", autocommit=False)
    claim.execute("select from trunkline.claim('other')")
    desk.limit("api", tokens_per_minute=1000)
    assert aside(desk) == (2, 1)
    code, _, detail = reason(desk, large)
    assert (code, "cost" in detail) == ("set_aside", False)
    assert "fits its limits again" in detail["hint"]
    claim.commit()
    sweep(desk)
    desk.database.move_time("65 seconds")
    assert desk.claimed() == [large]


def test_it_is_an_alarm_after_a_day_and_stays_alive(desk: Desk) -> None:
    desk.limit("api", tokens_per_minute=1000).task("api")
    (job,) = desk.enqueue(1, cost=LARGE)
    desk.limit("api", tokens_per_minute=900)
    desk.database.move_time("23 hours 59 minutes")
    sweep(desk)
    assert health(desk)[0]
    desk.database.move_time("2 minutes")
    sweep(desk)
    assert health(desk) == (False, {"jobs": 1, "overdue": 1, "counted_up_to": 10_000})
    desk.database.move_time("30 days")
    sweep(desk)
    assert (dead(desk), aside(desk)) == ([], (1, 1))
    desk.limit("api", tokens_per_minute=1000)
    assert health(desk) == (True, {"jobs": 0, "overdue": 0, "counted_up_to": 10_000})
    assert desk.claimed() == [job]


def test_it_is_dead_after_a_day_where_the_policy_says_so(desk: Desk) -> None:
    """Deferrals are bounded: 24 hours, or whatever max_deferral_age says."""
    desk.limit("api", tokens_per_minute=1000).task("api", dead_when_deferred=True)
    desk.task("api", task="patient")
    lowered = desk.operator.clock()
    mortal = desk.producer.enqueue(cost=LARGE, unique_key="u").job_id
    patient = desk.producer.enqueue("patient", cost=LARGE).job_id
    desk.limit("api", tokens_per_minute=900)
    dies = reason(desk, mortal)[1]
    assert lowered + timedelta(hours=24) <= dies <= desk.operator.clock() + timedelta(hours=24)
    desk.database.move_time("23 hours 59 minutes")
    sweep(desk)
    assert dead(desk) == []
    desk.database.move_time("2 minutes")
    sweep(desk)
    assert dead(desk) == [(mortal, "cost_over_limit")]
    events = desk.operator.connection.execute(
        "select kind, to_state, detail ->> 'limit' from trunkline.events"
        " where job_id = %s order by at",
        (mortal,),
    ).fetchall()
    assert events == [("set_aside", "blocked", "api"), ("outgrown", "dead", "api")]
    assert reason(desk, patient)[0] == "set_aside"
    # The key is free, and a letter that still does not fit is set aside for another day.
    second = desk.producer.enqueue(cost=SMALL, unique_key="u")
    assert second.created
    assert desk.claimed() == [second.job_id]
    desk.end([Attempt(second.job_id, 1, "w")])
    assert desk.operator.change("retry", mortal).state == "ready"
    desk.database.move_time("65 seconds")
    assert desk.claimed() == []
    assert reason(desk, mortal)[0] == "set_aside"
    desk.limit("api", tokens_per_minute=5000)
    assert set(desk.claimed()) == {mortal, patient}


def test_a_job_that_fits_again_is_not_buried_before_it_is_freed(desk: Desk) -> None:
    """While a claim holds the bucket it cannot be freed yet."""
    desk.limit("api", tokens_per_minute=1000, concurrency=5)
    desk.task("api", dead_when_deferred=True)
    (job,) = desk.enqueue(1, cost=LARGE)
    desk.limit("api", tokens_per_minute=900)
    desk.database.move_time("25 hours")
    desk.enqueue(1, cost={"tokens": 0})
    claim = desk.database.connect("trunkline_worker", autocommit=False)
    claim.execute("select from trunkline.claim('other')")
    desk.limit("api", tokens_per_minute=1000)
    sweep(desk)
    assert (dead(desk), aside(desk)[1]) == ([], 1)
    claim.commit()
    sweep(desk)
    assert (dead(desk), desk.claimed()) == ([], [job])


def test_it_can_be_cancelled_and_reprioritised_and_keeps_its_key(desk: Desk) -> None:
    desk.limit("api", tokens_per_minute=9000).task("api")
    first = desk.producer.enqueue(cost=LARGE, unique_key="u").job_id
    second, third = desk.enqueue(2, cost=LARGE)
    desk.limit("api", tokens_per_minute=900)
    again = desk.producer.enqueue(cost=SMALL, unique_key="u")
    assert (again.job_id, again.created) == (first, False)
    assert desk.operator.change("cancel", first).outcome == "cancelled"
    assert aside(desk) == (2, 2)
    assert health(desk)[1]["jobs"] == 2
    assert desk.producer.enqueue(cost=SMALL, unique_key="u").created
    assert desk.operator.change("reprioritise", third, 5).outcome == "reprioritised"
    desk.limit("api", tokens_per_minute=9000)
    assert desk.claimed()[:2] == [third, second]


def test_it_counts_as_waiting_for_every_depth(desk: Desk) -> None:
    desk.limit("api", tokens_per_minute=1000, depth_limit=3).task("api")
    desk.operator.value("select trunkline.limit_queue('default', 3)")
    desk.enqueue(2, cost=LARGE)
    desk.limit("api", tokens_per_minute=900)
    for code in ("queue_full", "limit_queue_full"):
        with pytest.raises(psycopg.Error) as refused:
            desk.enqueue(2, cost=SMALL)
        assert desk.detail(refused.value)["code"] == code
        assert desk.detail(refused.value)["waiting"] == 2
        desk.operator.value("select trunkline.limit_queue('default', null)")
    waiting = desk.operator.connection.execute(
        "select ready + scheduled + blocked from trunkline.queues where queue = 'default'"
    ).fetchall()
    assert waiting == [(2,)]


def test_enqueue_still_refuses_at_once_what_never_fits(desk: Desk) -> None:
    """CP-21."""
    desk.limit("api", tokens_per_minute=900).task("api")
    with pytest.raises(psycopg.Error) as refused:
        desk.enqueue(1, cost=LARGE)
    assert desk.detail(refused.value)["code"] == "cost_over_limit"


@pytest.mark.parametrize("declared", [False, True])
def test_workers_that_sleep_are_woken_when_jobs_are_freed(desk: Desk, declared: bool) -> None:
    ear = Ear(desk.database)
    declare(desk, 1000)
    desk.enqueue(1, cost=LARGE, queue="there")
    declare(desk, 900)
    assert desk.claimed() == []
    if declared:
        declare(desk, 1000)
    sleep(desk, "there")
    ear.heard()
    if declared:
        sweep(desk)
    else:
        desk.limit("api", tokens_per_minute=1000)
    assert "there" in ear.heard()


def test_workers_that_sleep_are_woken_for_what_stood_behind(desk: Desk) -> None:
    ear = Ear(desk.database)
    declare(desk, 1000)
    large, small = mixed(desk, 2, queue="there")
    declare(desk, 900)
    sleep(desk, "there")
    ear.heard()
    sweep(desk)
    assert "there" in ear.heard()
    assert desk.claimed() == small
    assert reason(desk, large[0])[0] == "set_aside"


def states(desk: Desk) -> list[Any]:
    """How many jobs are in each state, without the bound of the views that operators use."""
    return desk.operator.connection.execute(
        "select state, count(*) from trunkline.jobs group by 1 order by 1"
    ).fetchall()


def test_a_backlog_longer_than_one_call_goes_and_returns_in_parts(desk: Desk) -> None:
    """Every call is bounded: set_limit begins, claims and the duty go on."""
    desk.limit("api", tokens_per_minute=1_000_000).task("api")
    large = [job for _ in range(13) for job in desk.enqueue(1000, cost={"tokens": 20})]
    small = desk.enqueue(2, cost={"tokens": 1})
    desk.limit("api", tokens_per_minute=10)
    _, moved = aside(desk)
    assert 0 < moved < len(large)
    for _ in range(5):
        sweep(desk)
    assert states(desk) == [("blocked", len(large)), ("ready", 2)]
    # Counted up to 10,000.
    assert aside(desk) == (10_000, 10_000)
    assert desk.claimed() == small
    desk.limit("api", tokens_per_minute=1_000_000)
    assert states(desk)[0] == ("blocked", len(large) - 5000)
    for _ in range(5):
        sweep(desk)
    assert aside(desk)[1] == 0
    assert aside(desk) == (10_000, 0)
    assert [job for _ in range(13) for job in desk.claimed(1000)] == large


def test_no_job_is_lost_while_a_limit_goes_up_and_down_under_claims(desk: Desk) -> None:
    """Claims of many jobs keep a place in the lane, to which freed jobs return all the time."""
    desk.limit("api", tokens_per_minute=10_000_000).task("api")
    for _ in range(4):
        mixed(desk, 200)
    done = Event()

    def work(worker: str) -> None:
        calls = Calls(desk.database.connect("trunkline_worker"))
        while not done.is_set():
            if attempts := calls.claim(worker, 25).attempts:
                calls.batch("complete", worker, attempts)

    def change() -> None:
        try:
            for _ in range(15):
                desk.limit("api", tokens_per_minute=900)
                sweep(desk)
                desk.limit("api", tokens_per_minute=10_000_000)
            # A bucket that a claim held is left to the duty.
            until(ended, "all jobs ended")
        finally:
            done.set()

    def ended() -> bool:
        sweep(desk)
        return states(desk) == [("completed", 800)]

    actions: list[Callable[[], None]] = [partial(work, "one"), partial(work, "other"), change]
    together(actions)
    assert (states(desk), aside(desk)) == ([("completed", 800)], (0, 0))

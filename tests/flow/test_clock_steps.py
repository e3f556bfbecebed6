"""When the clock steps: shut no longer than the longest legal span from the new now."""

from typing import Any

import pytest

from tests.flow.conftest import Desk
from tests.flow.test_breakers import opened, state
from tests.flow.test_grants import acquire, settle, settle_job
from tests.flow.test_pauses import observe
from tests.support.waiting import until


def step(desk: Desk, by: str) -> None:
    """The clock steps while duties run, as somebody always has them run."""
    desk.worker.connection.execute("select * from trunkline.run_duties()")
    desk.database.move_time(by)
    desk.worker.connection.execute("select * from trunkline.run_duties()")


def spend(desk: Desk, **parts: Any) -> None:
    """All of a limit is given out, and one more job waits."""
    desk.limit("api", **parts).task("api", lease="1 day")
    desk.enqueue(4)
    assert len(desk.claim()) == 3
    assert desk.claim() == []


@pytest.mark.parametrize("back", ["-1 hour", "-30 days"])
@pytest.mark.parametrize(
    ("part", "shut", "opened"),
    [
        ("requests_per_minute", "45 seconds", "20 seconds"),
        ("requests_per_hour", "59 minutes", "2 minutes"),
    ],
)
def test_a_spent_window_is_over_after_its_length_from_the_new_now(
    desk: Desk, part: str, shut: str, opened: str, back: str
) -> None:
    spend(desk, **{part: 3})
    step(desk, back)
    assert desk.claim() == [], "what was given out may have been given out just now"
    desk.database.move_time(shut)
    assert desk.claim() == []
    desk.database.move_time(opened)
    assert len(desk.claim()) == 1


def test_tokens_that_are_too_few_for_the_next_are_full_again(desk: Desk) -> None:
    """Not spent, so nothing says when it is free; what was charged still lies ahead."""
    desk.limit("api", tokens_per_minute=100).task("api", lease="1 day")
    desk.enqueue(2, cost={"tokens": 60})
    assert len(desk.claim()) == 1
    step(desk, "-1 hour")
    assert desk.claim() == []
    desk.database.move_time("65 seconds")
    assert len(desk.claim()) == 1


def test_a_hold_is_as_long_as_it_was(desk: Desk) -> None:
    desk.limit("api", requests_per_minute=100).task("api")
    desk.enqueue(1)
    observe(desk, "api", retry_after=100)
    step(desk, "-1 day")
    assert desk.claim() == []
    desk.database.move_time("90 seconds")
    assert desk.claim() == []
    desk.database.move_time("30 seconds")
    assert len(desk.claim()) == 1


def test_a_hold_is_never_longer_than_an_hour(desk: Desk) -> None:
    """Also where no duty ran before the step, so that nobody knows how far it went."""
    desk.limit("api", requests_per_minute=100).task("api")
    desk.enqueue(1)
    observe(desk, "api", retry_after=100)
    desk.database.move_time("-1 day")
    desk.operator.run_duty("sweep_buckets()")
    assert desk.claim() == []
    desk.database.move_time("1 hour")
    assert len(desk.claim()) == 1


def test_an_open_breaker_is_tried_after_its_time(desk: Desk) -> None:
    opened(desk)
    step(desk, "-1 hour")
    assert desk.claim() == []
    desk.database.move_time("55 seconds")
    assert desk.claim() == []
    desk.database.move_time("6 seconds")
    (probe,) = desk.claim()
    desk.end([probe])
    assert state(desk) == "closed"


def test_a_breaker_opened_by_hand_stays_open_for_the_given_time(desk: Desk) -> None:
    desk.limit("api", breaker_failures=10).task("api")
    desk.enqueue(1)
    desk.operator.value("select trunkline.trip_breaker('api', 'for the night', '8 hours')")
    step(desk, "-1 hour")
    desk.database.move_time("7 hours 59 minutes")
    assert desk.claim() == []
    desk.database.move_time("61 seconds")
    assert len(desk.claim()) == 1


def test_a_closed_breaker_still_sees_failures(desk: Desk) -> None:
    """Those of the outage are over, those after the step are not."""
    opened(desk)
    desk.database.move_time("61 seconds")
    desk.end(desk.claim())
    assert state(desk) == "closed"
    step(desk, "-1 hour")
    assert state(desk) == "closed"
    running = desk.claim(10)
    desk.end(running, "fail", delays=["1 hour"] * 10)
    assert state(desk) == "open"


def test_a_quota_counts_what_lies_ahead_as_of_this_hour(desk: Desk) -> None:
    spend(
        desk,
        quota=3,
        quota_unit="requests",
        quota_window="2 hours",
        quota_buffer=1,
        quota_refuses=False,
    )
    step(desk, "-1 day")
    assert desk.claim() == []
    desk.database.move_time("110 minutes")
    assert desk.claim() == []
    # Two hours, and the hour that is not over yet.
    desk.database.move_time("71 minutes")
    assert len(desk.claim()) == 1


def test_a_grant_expires_after_its_time(desk: Desk) -> None:
    desk.limit("api", concurrency=1)
    assert acquire(desk).granted
    step(desk, "-1 day")
    assert not acquire(desk).granted
    desk.database.move_time("4 minutes 50 seconds")
    assert not acquire(desk).granted
    desk.database.move_time("15 seconds")
    assert acquire(desk).granted


def test_what_is_given_back_late_opens_no_window_twice(desk: Desk) -> None:
    """It was charged in a second that has not come yet: the refund would outlast its charge."""
    desk.limit("api", tokens_per_minute=100)
    grant = acquire(desk, tokens=100)
    step(desk, "-1 hour")
    desk.database.move_time("40 seconds")
    assert settle(desk, grant.grant_id, tokens=0) == "settled"
    desk.operator.run_duty("sweep_buckets()")
    desk.database.move_time("25 seconds")
    assert acquire(desk, tokens=100).granted
    assert not acquire(desk, tokens=1).granted


def test_what_is_given_back_once_its_second_has_come_again_opens_no_window_twice(
    desk: Desk,
) -> None:
    """Its charge, counted as of the step, is over by then."""
    desk.limit("api", tokens_per_minute=100)
    grant = acquire(desk, tokens=100)
    step(desk, "-2 minutes")
    desk.database.move_time("125 seconds")
    assert acquire(desk, tokens=100).granted
    assert settle(desk, grant.grant_id, tokens=0) == "settled"
    assert not acquire(desk, tokens=1).granted


def test_what_a_claim_charged_before_the_step_is_no_grant_long_after_it(desk: Desk) -> None:
    """It looks as if it were of this very second, for as long as the step was."""
    desk.limit("api", requests_per_minute=1).task("api", lease="1 day")
    desk.enqueue(2)
    (held,) = desk.claim()
    step(desk, "-1 hour")
    desk.database.move_time("65 seconds")
    assert len(desk.claim()) == 1
    assert not acquire(desk, attempt=held).granted


def test_a_raised_limit_counts_at_once_after_a_step_back(desk: Desk) -> None:
    spend(desk, requests_per_hour=3)
    desk.database.move_time("-10 minutes")
    desk.limit("api", requests_per_hour=4)
    assert len(desk.claim()) == 1


def test_a_step_forward_lets_windows_holds_and_grants_pass(desk: Desk) -> None:
    """For the server that time is over: a provider that knows better says so with a 429."""
    desk.limit("slot", concurrency=1)
    assert acquire(desk, "slot").granted
    spend(desk, requests_per_hour=3)
    observe(desk, "api", retry_after=100)
    step(desk, "61 minutes")
    assert len(desk.claim()) == 1
    assert acquire(desk, "slot").granted


def test_forward_and_back_again_gives_out_no_more_than_one_window(desk: Desk) -> None:
    spend(desk, requests_per_minute=3)
    desk.enqueue(10)
    step(desk, "1 hour")
    assert len(desk.claim()) == 3
    step(desk, "-1 hour")
    assert desk.claim() == []
    desk.database.move_time("65 seconds")
    assert len(desk.claim()) == 3


def test_a_job_that_settles_after_the_step_changes_only_its_usage(desk: Desk) -> None:
    desk.limit("api", tokens_per_minute=100).task("api", lease="1 day")
    desk.enqueue(3, cost={"tokens": 50})
    first, second = desk.claim()
    step(desk, "-1 hour")
    assert settle_job(desk, first, tokens=0) == "settled"
    assert settle_job(desk, second, tokens=90) == "settled"
    desk.operator.run_duty("sweep_buckets()")
    assert desk.claim() == []
    desk.database.move_time("67 seconds")
    assert len(desk.claim()) == 1


def test_what_is_handed_back_unstarted_after_the_step_opens_no_window_twice(desk: Desk) -> None:
    desk.limit("api", requests_per_minute=3).task("api", lease="1 day")
    desk.enqueue(9)
    held = desk.claim()
    step(desk, "-1 hour")
    desk.database.move_time("40 seconds")
    desk.end(held, "release", unstarted=True)
    assert desk.claim() == []
    desk.database.move_time("25 seconds")
    assert len(desk.claim()) == 3
    assert desk.claim() == []


def test_an_amount_added_after_the_step_shuts_the_window_for_a_minute(desk: Desk) -> None:
    """Counted in its second, which has not come, it would shut the window for an hour."""
    desk.limit("api", tokens_per_minute=100).task("api", lease="1 day")
    desk.enqueue(2, cost={"tokens": 60})
    (held,) = desk.claim()
    step(desk, "-1 hour")
    assert settle_job(desk, held, tokens=160) == "settled"
    desk.database.move_time("50 seconds")
    assert desk.claim() == []
    desk.database.move_time("17 seconds")
    assert len(desk.claim()) == 1


def test_what_claims_charged_side_by_side_is_over_after_a_minute(desk: Desk) -> None:
    """Claims of a limit with much room leave lines beside its state."""
    desk.limit("api", tokens_per_minute=100_000).task("api", lease="1 day")
    desk.enqueue(4, cost={"tokens": 60})
    assert len(desk.claim(3)) == 3
    # Lines of a transaction are counted in once all older ones of the server have ended.
    last = desk.behind.execute("select pg_current_xact_id()").fetchone()
    until(
        lambda: (
            desk.behind.execute(
                "select pg_snapshot_xmin(pg_current_snapshot()) > %s::text::xid8", last
            ).fetchone()
            == (True,)
        ),
        "all older transactions ended",
    )
    step(desk, "-1 hour")
    desk.limit("api", tokens_per_minute=200)
    assert desk.claim() == []
    desk.database.move_time("67 seconds")
    assert len(desk.claim()) == 1

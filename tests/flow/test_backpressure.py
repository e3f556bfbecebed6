"""Above a share of its minute a limit puts new jobs off, so that they do not crowd its lane."""

from datetime import timedelta
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from tests.flow.conftest import Desk
from tests.support.internals import flow

FIVE_SECONDS = timedelta(seconds=5)


def guarded(desk: Desk, **parts: Any) -> Desk:
    given = {"requests_per_minute": 500, "backpressure_threshold": 0.8} | parts
    desk.set_limit("api", given)
    return desk.task("api")


def use(desk: Desk, **cost: int) -> None:
    """Let a job take so much at once."""
    desk.producer.enqueue(cost=cost)
    assert len(desk.claim()) == 1


def deferral(desk: Desk, **fields: Any) -> timedelta:
    """Return by how much a new job is deferred, which its state confirms."""
    answer = desk.producer.enqueue(**fields)
    found = desk.behind.execute(
        "select state, run_at, run_at - created_at from trunkline.jobs where job_id = %s",
        (answer.job_id,),
    ).fetchone()
    assert found is not None
    state, run_at, later = found
    assert (answer.state, answer.run_at) == (state, run_at)
    assert state == ("ready" if later == timedelta() else "scheduled")
    assert flow.waits_for_bucket(desk.behind, answer.job_id)
    assert isinstance(later, timedelta)
    return later


def test_only_usage_above_the_threshold_defers_jobs(desk: Desk) -> None:
    """CP-23, CP-S06: 400 of 500 are not above 0.80; 401 are, for as long as the minute is young."""
    guarded(desk)
    use(desk, requests=400)
    assert deferral(desk) == timedelta()
    assert len(desk.claim()) == 1
    assert deferral(desk) == FIVE_SECONDS


def test_a_minute_that_is_over_counts_nothing(desk: Desk) -> None:
    """CP-S06: 490 of 500, two minutes ago."""
    guarded(desk)
    use(desk, requests=490)
    assert deferral(desk) == FIVE_SECONDS
    desk.database.move_time("2 minutes")
    assert deferral(desk) == timedelta()


def test_tokens_count_as_requests_do(desk: Desk) -> None:
    """CP-23: a limit of tokens is a limit."""
    guarded(desk, tokens_per_minute=1000)
    use(desk, tokens=800)
    assert deferral(desk) == timedelta()
    desk.claim()
    use(desk, tokens=1)
    assert deferral(desk) == FIVE_SECONDS


def test_the_delay_is_the_limits_own(desk: Desk) -> None:
    guarded(desk, backpressure_delay="90 seconds")
    use(desk, requests=450)
    assert deferral(desk) == timedelta(seconds=90)


def test_a_deferred_job_runs_when_its_time_has_come(desk: Desk) -> None:
    guarded(desk)
    use(desk, requests=450)
    job = desk.producer.enqueue().job_id
    assert desk.claim() == []
    desk.database.move_time("6 seconds")
    assert desk.claimed() == [job]


@pytest.mark.parametrize("status", ["maintenance", "disabled"])
def test_a_limit_that_is_not_active_puts_nobody_off(desk: Desk, status: str) -> None:
    """CP-100: the job is accepted without delay and waits at the claim."""
    guarded(desk)
    use(desk, requests=450)
    desk.set_limit("api", {}, status)
    assert deferral(desk) == timedelta()
    assert desk.claim() == []


def test_a_limit_of_zero_puts_nobody_off(desk: Desk) -> None:
    """CP-100: nothing is divided by it."""
    guarded(desk)
    use(desk, requests=450)
    desk.limit("api", requests_per_minute=0, tokens_per_minute=0)
    assert deferral(desk) == timedelta()


@pytest.mark.parametrize(
    ("fields", "later"),
    [
        ({"run_at": None}, 5),
        ({"delay": "2 seconds"}, 5),
        ({"delay": "1 hour"}, 3600),
        ({"run_at": "2001-01-01T00:00:00Z"}, 5),
    ],
)
def test_a_job_that_asks_for_a_later_time_keeps_it(
    desk: Desk, fields: dict[str, Any], later: int
) -> None:
    """CP-22: no time is now; a time that is later than the delay is not moved."""
    guarded(desk)
    use(desk, requests=450)
    assert deferral(desk, **fields) == timedelta(seconds=later)


def test_each_key_has_its_own_minute(desk: Desk) -> None:
    desk.set_limit("model/{model}", {"requests_per_minute": 10, "backpressure_threshold": 0.5})
    desk.task("model/{model}")
    desk.enqueue(6, payload={"model": "a"})
    assert len(desk.claim()) == 6
    assert deferral(desk, payload={"model": "a"}) == FIVE_SECONDS
    assert deferral(desk, payload={"model": "b"}) == timedelta()


def test_the_longest_delay_of_several_limits_counts(desk: Desk) -> None:
    guarded(desk)
    desk.set_limit(
        "all",
        {"requests_per_minute": 500, "backpressure_threshold": 0.5, "backpressure_delay": "1 min"},
    )
    desk.task("api", "all")
    use(desk, requests=450)
    assert deferral(desk) == timedelta(minutes=1)


def test_what_was_settled_counts_as_it_was(desk: Desk) -> None:
    """A job that took less than was thought makes room at once, before anybody claims again."""
    guarded(desk, tokens_per_minute=1000)
    desk.producer.enqueue(cost={"tokens": 900})
    (attempt,) = desk.claim()
    assert deferral(desk) == FIVE_SECONDS
    settled = desk.worker.value(
        "select trunkline.settle_job(%s, %s, %s)",
        attempt.job,
        attempt.number,
        Jsonb({"tokens": 10}),
    )
    assert settled == "settled"
    assert deferral(desk) == timedelta()


def test_a_repeated_request_returns_the_first_due_time(desk: Desk) -> None:
    """A deferred job keeps its time when the request is repeated after the minute."""
    guarded(desk)
    use(desk, requests=450)
    first = desk.producer.enqueue(idempotency_key="k")
    assert first.state == "scheduled"
    desk.database.move_time("2 minutes")
    again = desk.producer.enqueue(idempotency_key="k")
    assert (again.job_id, again.run_at, again.created) == (first.job_id, first.run_at, False)
    desk.end(desk.claim())
    ended = desk.producer.enqueue(idempotency_key="k")
    assert (ended.job_id, ended.state) == (first.job_id, "completed")
    assert ended.run_at == first.run_at

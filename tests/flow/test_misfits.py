"""Lowered limits: a job that no longer fits is set aside, holds up nobody, and returns."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from psycopg.types.json import Jsonb

from tests.flow.conftest import Desk
from tests.flow.test_fairness import POOL

LARGE, SMALL = {"tokens": 1000}, {"tokens": 100}


def sweep(desk: Desk) -> None:
    desk.operator.value("select trunkline.sweep_buckets()")


def declare(desk: Desk, tokens: int, *limits: str, **policy: Any) -> None:
    """Let the code of a task say what its limit allows: nothing is done about what waits."""
    declared = {"api": {"tokens_per_minute": tokens}}
    policy |= {"task": "work", "limits": [*limits, "api"], "declares": declared}
    desk.producer.value("select trunkline.register_tasks(%s)", Jsonb([policy]))


def reason(desk: Desk, job: UUID) -> Any:
    """The last reason that explain gives, and its detail: those before it concern workers."""
    rows = desk.operator.connection.execute(
        "select reason, until, detail from trunkline.explain(%s)", (job,)
    ).fetchall()
    return rows[-1]


def aside(desk: Desk, limit: str = "api") -> tuple[int, int]:
    """How many jobs wait for a limit, and how many of them are set aside."""
    row = desk.operator.connection.execute(
        "select waiting, set_aside from trunkline.limits where name = %s", (limit,)
    ).fetchone()
    assert row is not None
    return row[0], row[1]


def health(desk: Desk) -> tuple[bool, dict[str, Any]]:
    row = desk.operator.connection.execute(
        "select ok, detail from trunkline.health() where \"check\" = 'set aside'"
    ).fetchone()
    assert row is not None
    return row[0], row[1]


def dead(desk: Desk) -> list[Any]:
    return desk.operator.connection.execute(
        "select job_id, reason from trunkline.dead_letters order by job_id"
    ).fetchall()


def mixed(desk: Desk, count: int, **fields: Any) -> tuple[list[UUID], list[UUID]]:
    """Enqueue large and small jobs in turn; return the large and the small ones."""
    jobs = [{"task": "work", "cost": (LARGE, SMALL)[n % 2], **fields} for n in range(count)]
    ids = [row.job_id for row in desk.producer.enqueue_many(jobs)]
    return ids[::2], ids[1::2]


@pytest.mark.parametrize(
    ("parts", "lower", "cost", "unit"),
    [
        ({"requests_per_minute": 100}, {"requests_per_minute": 9}, {"requests": 10}, "requests"),
        ({"requests_per_hour": 100}, {"requests_per_hour": 9}, {"requests": 10}, "requests"),
        ({"tokens_per_minute": 100}, {"tokens_per_minute": 9}, {"tokens": 10}, "tokens"),
        ({"tokens_per_hour": 100}, {"tokens_per_hour": 9}, {"tokens": 10}, "tokens"),
        ({"quota": 100}, {"quota": 10}, {"units": 10}, "units"),
        ({"quota": 100, "quota_unit": "tokens"}, {"quota": 10}, {"tokens": 10}, "tokens"),
        ({}, {"tokens_per_minute": 9}, {"tokens": 10}, "tokens"),
    ],
)
def test_a_job_that_no_longer_fits_waits_visibly_and_holds_up_nobody(
    desk: Desk, parts: dict[str, Any], lower: dict[str, Any], cost: dict[str, int], unit: str
) -> None:
    desk.limit("api", **parts).task("api")
    large = desk.producer.enqueue(cost=cost).job_id
    small = desk.producer.enqueue(cost={"requests": 1}).job_id
    assert health(desk) == (True, {"jobs": 0, "overdue": 0, "counted_up_to": 10_000})
    desk.limit("api", **lower)
    assert aside(desk) == (2, 1)
    assert health(desk) == (True, {"jobs": 1, "overdue": 0, "counted_up_to": 10_000})
    code, until, detail = reason(desk, large)
    assert (code, until) == ("set_aside", None)
    assert {name: detail[name] for name in ("limit", "unit", "cost", "most")} == {
        "limit": "api",
        "unit": unit,
        "cost": 10,
        "most": 9,
    }
    assert "trunkline.set_limit" in detail["hint"]
    assert desk.claimed() == [small]
    sweep(desk)
    assert desk.claimed() == []
    assert (dead(desk), aside(desk)) == ([], (1, 1))
    events = desk.operator.connection.execute(
        "select kind, detail ->> 'limit' from trunkline.events where job_id = %s", (large,)
    ).fetchall()
    assert events == [("set_aside", "api")]


@pytest.mark.parametrize("higher", [{"tokens_per_minute": 100_000}, {"tokens_per_minute": None}])
def test_raised_again_the_limit_frees_jobs_in_their_old_order(
    desk: Desk, higher: dict[str, int | None]
) -> None:
    """Among the jobs that fitted all along, too; also where the limit counts no tokens any more."""
    desk.limit("api", tokens_per_minute=100_000).task("api")
    large, small = mixed(desk, 12)
    urgent, _ = mixed(desk, 2, priority=5)
    desk.limit("api", tokens_per_minute=900)
    assert aside(desk) == (14, 7)
    desk.limit("api", **higher)
    assert aside(desk) == (14, 0)
    claimed = desk.claimed()
    assert claimed[0] == urgent[0]
    assert claimed[2:] == [job for pair in zip(large, small, strict=True) for job in pair]


def test_a_bucket_that_claims_have_walked_past_gives_freed_jobs_first(desk: Desk) -> None:
    """Claims of many jobs keep a place in the lane, which must not lie behind those that return."""
    desk.limit("api", tokens_per_minute=1_000_000, concurrency=40).task("api")
    first = desk.enqueue(2, cost=LARGE)
    desk.enqueue(250, cost={"tokens": 1})
    desk.limit("api", tokens_per_minute=900)
    for _ in range(10):
        attempts = desk.claim(25)
        assert len(attempts) == 25
        desk.end(attempts)
    later = desk.enqueue(1, cost=SMALL)
    desk.limit("api", tokens_per_minute=1_000_000)
    assert desk.claimed(1) == first[:1]
    assert desk.claimed() == [*first[1:], *later]


def test_only_jobs_that_fit_the_new_limit_are_freed(desk: Desk) -> None:
    desk.limit("api", tokens_per_minute=1000).task("api")
    jobs = [desk.producer.enqueue(cost={"tokens": n}).job_id for n in (990, 910, 950, 930)]
    desk.limit("api", tokens_per_minute=900)
    assert aside(desk) == (4, 4)
    desk.limit("api", tokens_per_minute=940)
    assert aside(desk) == (4, 2)
    assert desk.claimed() == [jobs[1]]
    assert [reason(desk, job)[0] for job in jobs] == ["set_aside", "running", "set_aside", "limit"]


def test_neither_another_task_nor_another_queue_nor_another_key_is_held_up(desk: Desk) -> None:
    desk.limit("model/{model}", tokens_per_minute=1000).task("model/{model}")
    desk.task("model/{model}", task="other")
    large = [
        desk.producer.enqueue(payload={"model": "a"}, cost=LARGE, **where).job_id
        for where in ({}, {"queue": "slow"}, {"priority": 9}, {"task": "other"})
    ]
    fitting = {
        desk.producer.enqueue(payload={"model": model}, cost=cost, **where).job_id
        for model, cost in (("a", SMALL), ("b", LARGE))
        for where in ({}, {"queue": "slow"}, {"priority": 9}, {"task": "other"})
    }
    # A limit of one key: the others keep what they had.
    desk.limit("model/a", tokens_per_minute=900)
    assert aside(desk, "model/a") == (8, 4)
    assert aside(desk, "model/{model}") == (4, 0)
    claimed = set(desk.claimed())
    while more := set(desk.claimed()):
        claimed |= more
    desk.database.move_time("65 seconds")
    while more := set(desk.claimed()):
        claimed |= more
        desk.database.move_time("65 seconds")
    assert claimed == fitting
    desk.limit("model/a", tokens_per_minute=None)
    desk.database.move_time("65 seconds")
    assert set(desk.claimed()) == set(large)


def test_a_limit_that_code_declares_lower_sets_aside_without_a_duty(desk: Desk) -> None:
    declare(desk, 1000)
    large, small = mixed(desk, 4)
    declare(desk, 900)
    assert desk.claimed() == small
    assert aside(desk) == (2, 2)
    declare(desk, 2000)
    sweep(desk)
    desk.database.move_time("65 seconds")
    assert desk.claimed() == large


@pytest.mark.parametrize("how", ["release", "fail"])
def test_a_job_that_comes_back_and_no_longer_fits_is_set_aside(desk: Desk, how: str) -> None:
    desk.limit("api", tokens_per_minute=5000).task("api")
    desk.database.draw(0)
    large = desk.claim(len(desk.enqueue(3, cost=LARGE)))
    small = desk.enqueue(2, cost=SMALL)
    desk.limit("api", tokens_per_minute=900)
    desk.end(large, how, **({"delays": [timedelta()] * 3} if how == "fail" else {}))
    desk.database.move_time("65 seconds")
    assert desk.claimed() == small
    assert desk.claimed() == []
    assert aside(desk) == (3, 3)
    desk.limit("api", tokens_per_minute=5000)
    assert desk.claimed() == [attempt.job for attempt in large]


def test_a_scheduled_job_that_no_longer_fits_when_due_is_set_aside(desk: Desk) -> None:
    desk.limit("api", tokens_per_minute=1000).task("api")
    later = desk.enqueue(1, cost=LARGE, delay="1 hour")
    desk.limit("api", tokens_per_minute=900)
    desk.database.move_time("1 hour")
    small = desk.enqueue(1, cost=SMALL)
    assert desk.claimed() == small
    assert reason(desk, later[0])[0] == "set_aside"


def test_explain_reports_a_job_that_no_longer_fits_before_it_is_set_aside(desk: Desk) -> None:
    """Neither a sweep nor a claim has reached it yet."""
    declare(desk, 1000)
    (job,) = desk.enqueue(1, cost=LARGE)
    declare(desk, 900)
    assert reason(desk, job)[0] == "set_aside"
    assert aside(desk) == (1, 0)
    sweep(desk)
    assert aside(desk) == (1, 1)


def test_a_job_with_two_limits_waits_for_whichever_is_too_small(desk: Desk) -> None:
    desk.limit("api", tokens_per_minute=1000).limit("budget", quota=2000, quota_unit="tokens")
    desk.task("api", "budget")
    (job,) = desk.enqueue(1, cost=LARGE)
    desk.limit("budget", quota=500)
    small = desk.enqueue(1, cost=SMALL)
    assert desk.claimed() == small
    assert reason(desk, job)[2]["limit"] == "budget"
    assert (aside(desk, "budget"), aside(desk)) == ((1, 1), (0, 0))
    desk.limit("api", tokens_per_minute=900)
    desk.limit("budget", quota=9000)
    assert reason(desk, job)[2]["limit"] == "api"
    assert (aside(desk, "budget"), aside(desk)) == ((0, 0), (1, 1))
    desk.database.move_time("65 seconds")
    assert desk.claimed() == []
    desk.limit("api", tokens_per_minute=1000)
    assert desk.claimed() == [job]


def test_a_fair_share_is_not_held_up_by_a_job_that_no_longer_fits(desk: Desk) -> None:
    """Jobs of a share group stay in its line whatever other limit refuses them."""
    desk.limit(POOL)
    declare(desk, 1000, POOL)
    large, small = mixed(desk, 4, tenant="t")
    declare(desk, 900, POOL)
    assert desk.claimed(1) == small[:1]
    assert desk.claimed() == small[1:]
    assert desk.claimed() == []
    assert aside(desk) == (2, 2)
    desk.limit("api", tokens_per_minute=5000)
    assert desk.claimed() == large


def test_an_open_breaker_and_a_pause_leave_it_set_aside(desk: Desk) -> None:
    desk.limit("api", tokens_per_minute=1000, breaker_failures=1).task("api")
    (job,) = desk.enqueue(1, cost=LARGE)
    desk.limit("api", tokens_per_minute=900)
    desk.operator.value("select trunkline.trip_breaker('api', 'test')")
    desk.set_limit("api", {}, "maintenance")
    assert reason(desk, job)[0] == "set_aside"
    desk.limit("api", tokens_per_minute=1000)
    assert reason(desk, job)[0] == "breaker"
    assert desk.claimed() == []
    desk.operator.value("select trunkline.reset_breaker('api')")
    desk.set_limit("api", {}, "active")
    assert desk.claimed() == [job]


def test_jobs_that_fit_or_wait_for_a_limit_of_zero_stay_in_their_lane(desk: Desk) -> None:
    """A limit of zero is a provider switched off for now."""
    desk.limit("api", requests_per_minute=100, concurrency=1).task("api")
    jobs = desk.enqueue(3, cost={"requests": 50})
    desk.limit("api", requests_per_minute=0)
    sweep(desk)
    assert aside(desk) == (3, 0)
    desk.limit("api", requests_per_minute=50)
    sweep(desk)
    assert desk.claimed() == jobs[:1]

"""Limits decided at the claim: slots, windows, tokens, keys, several at once."""

from typing import Any

import psycopg
import pytest

from tests.flow.conftest import Desk
from tests.support.internals import rows


def test_slots_are_handed_out_up_to_the_limit_and_come_back_with_every_end(desk: Desk) -> None:
    """CP-54, CP-59: whatever ends an attempt gives its slot back."""
    desk.limit("api", concurrency=2).task("api")
    desk.enqueue(9)
    running = desk.claim()
    assert len(running) == 2
    assert desk.claim() == []
    for how, more in (
        ("complete", {}),
        ("fail", {}),
        ("snooze", {"delays": ["1 hour"]}),
        ("release", {}),
    ):
        desk.end(running[:1], how, **more)
        following = desk.claim()
        assert len(following) == 1, how
        running = [running[1], *following]
    assert desk.bucket("api")["in_use"] == 2


def test_a_dead_workers_slots_come_back_with_its_jobs(desk: Desk) -> None:
    """CP-59: nobody has to release anything for it."""
    desk.limit("api", concurrency=1).task("api")
    first, second = desk.enqueue(2)
    assert desk.claimed() == [first]
    desk.database.move_time("301 seconds")
    assert [row.job_id for row in desk.worker.reclaim()] == [first]
    assert desk.claimed() == [second]


def test_jobs_without_limits_are_claimed_as_well(desk: Desk) -> None:
    desk.limit("api", concurrency=1).task("api").task(task="free")
    desk.enqueue(3)
    free = desk.enqueue(3, task="free")
    claimed = desk.claimed()
    assert len(claimed) == 4
    assert set(free) <= set(claimed)
    assert desk.claim() == []


@pytest.mark.parametrize("position", [None, {}])
def test_priorities_hold_across_limited_and_other_jobs(
    desk: Desk, position: dict[str, Any] | None
) -> None:
    """Invariant 9."""
    desk.limit("api", concurrency=5).task("api").task(task="free")
    order = [
        desk.enqueue(1, task=task, priority=priority)[0]
        for task, priority in (
            ("work", 1),
            ("free", 3),
            ("work", 5),
            ("free", 7),
            ("work", 7),
            ("free", 1),
        )
    ]
    expected = [order[index] for index in (3, 4, 2, 1, 0, 5)]
    found = desk.worker.claim("w", 4, position=position)
    rest = desk.worker.claim("w", 4, position=found.position)
    assert found.jobs + rest.jobs == expected


def test_no_minute_holds_more_requests_than_the_limit(desk: Desk) -> None:
    """The window slides: the full burst, and then nothing until it is old enough."""
    desk.limit("api", requests_per_minute=3).task("api")
    desk.enqueue(20)
    assert len(desk.claim(2)) == 2
    desk.database.move_time("30 seconds")
    assert len(desk.claim()) == 1
    desk.database.move_time("29 seconds")
    assert desk.claim() == []
    # The first two are out of every window of a minute; the third is not.
    desk.database.move_time("4 seconds")
    assert len(desk.claim()) == 2
    assert desk.claim() == []
    desk.database.move_time("30 seconds")
    assert len(desk.claim()) == 1


def test_the_hour_counts_too(desk: Desk) -> None:
    """CP-54: minute and hour must both fit."""
    desk.limit("api", requests_per_minute=2, requests_per_hour=5).task("api")
    desk.enqueue(20)
    taken = []
    for _ in range(4):
        taken.append(len(desk.claim()))
        desk.database.move_time("70 seconds")
    assert taken == [2, 2, 1, 0]
    # By the hour charges are kept by the minute.
    desk.database.move_time("3382 seconds")
    assert len(desk.claim()) == 2


def test_tokens_are_counted_by_the_cost_of_each_job(desk: Desk) -> None:
    desk.limit("api", tokens_per_minute=1000).task("api", cost={"tokens": 300})
    desk.enqueue(2)
    large = desk.enqueue(1, cost={"tokens": 900})
    small = desk.enqueue(1, cost={"tokens": 1})
    assert len(desk.claim()) == 2
    # The large one is at the head and does not fit; what is behind it does not overtake it.
    assert desk.claim() == []
    desk.database.move_time("63 seconds")
    assert desk.claimed() == [*large, *small]
    assert desk.bucket("api")["tokens_of_minute"] == 901


def test_each_key_has_its_own_limit(desk: Desk) -> None:
    desk.limit("model/{model}", concurrency=1).task("model/{model}")
    desk.enqueue(2, payload={"model": "a"})
    desk.enqueue(2, payload={"model": "b"})
    assert len(desk.claim()) == 2
    assert desk.claim() == []
    assert desk.bucket("model/a")["in_use"] == desk.bucket("model/b")["in_use"] == 1


def test_a_limit_of_a_filled_in_name_goes_before_the_one_with_keys(desk: Desk) -> None:
    desk.limit("model/{model}", concurrency=1).task("model/{model}")
    desk.enqueue(9, payload={"model": "a"})
    desk.enqueue(9, payload={"model": "b"})
    assert len(desk.claim()) == 2
    desk.limit("model/a", concurrency=5)
    assert len(desk.claim()) == 4


def test_a_limit_of_a_filled_in_name_is_charged_by_its_own_parts(desk: Desk) -> None:
    """Jobs that were enqueued under the limit with keys, and count in windows that it has not."""
    desk.limit("model/{model}", concurrency=50).task("model/{model}")
    desk.enqueue(9, payload={"model": "a"})
    desk.enqueue(9, payload={"model": "a"}, delay="10 seconds")
    desk.limit("model/a", requests_per_minute=3)
    assert len(desk.claim()) == 3
    assert desk.claim() == []
    desk.database.move_time("63 seconds")
    assert len(desk.claim()) == 3


def test_a_key_can_be_the_tenant(desk: Desk) -> None:
    """One customer's many jobs do not stand in the way of another's."""
    desk.limit("customer/{tenant}", concurrency=2).task("customer/{tenant}")
    desk.enqueue(50, tenant="large")
    small = desk.enqueue(1, tenant="small")
    claimed = desk.claimed()
    assert len(claimed) == 3
    assert set(small) <= set(claimed)


def test_all_limits_of_a_job_must_have_room(desk: Desk) -> None:
    desk.limit("api", concurrency=3).limit("model/{model}", concurrency=1)
    desk.task("api", "model/{model}")
    desk.enqueue(3, payload={"model": "a"})
    desk.enqueue(3, payload={"model": "b"})
    first = desk.claim() + desk.claim()
    assert len(first) == 2
    assert desk.claim() == []
    desk.end(first[:1])
    second = desk.claim()
    assert len(second) == 1
    # Nothing gets lost on its way from one limit's lane to the other's.
    running = [*first[1:], *second]
    ended = 1
    while running:
        assert len(running) <= 2
        desk.end(running)
        ended += len(running)
        running = desk.claim() + desk.claim()
    assert ended == 6


@pytest.mark.parametrize("status", ["maintenance", "disabled"])
def test_a_limit_that_is_not_active_gives_nothing_and_loses_nothing(
    desk: Desk, status: str
) -> None:
    """CP-57: no error that burns an attempt."""
    desk.limit("api", concurrency=5).task("api")
    jobs = desk.enqueue(2)
    desk.set_limit("api", {}, status)
    assert desk.claim() == []
    desk.set_limit("api", {}, "active")
    assert desk.claimed() == jobs


def test_a_raised_limit_counts_at_the_next_claim(desk: Desk) -> None:
    """A limit that is spent for a minute is not waited for once it allows more."""
    desk.limit("api", requests_per_minute=1).task("api")
    desk.enqueue(9)
    assert len(desk.claim()) == 1
    assert desk.claim() == []
    assert desk.bucket("api")["free_at"] is not None
    desk.limit("api", requests_per_minute=4)
    assert len(desk.claim()) == 3


def test_a_limit_of_zero_gives_nothing(desk: Desk) -> None:
    """CP-100."""
    desk.limit("api", requests_per_minute=0).task("api")
    jobs = desk.enqueue(1)
    assert desk.claim() == []
    desk.limit("api", requests_per_minute=1)
    assert desk.claimed() == jobs


def test_a_failed_job_waits_for_its_limit_again(desk: Desk) -> None:
    desk.limit("api", concurrency=1).task("api", backoff={"base": 1, "jitter": 0})
    first, second = desk.enqueue(2)
    attempts = desk.claim()
    desk.end(attempts, "fail")
    assert desk.claimed() == [second]
    desk.database.move_time("2 seconds")
    assert desk.claim() == []
    assert rows.count(desk.behind, "running") == 1
    desk.database.move_time("301 seconds")
    desk.worker.reclaim()
    assert desk.claimed() == [first]


def test_a_replayed_dead_letter_waits_for_its_limit(desk: Desk) -> None:
    desk.limit("api", concurrency=1).task("api", max_attempts=1)
    first, second = desk.enqueue(2)
    desk.end(desk.claim(), "fail")
    assert desk.claimed() == [second]
    desk.operator.change("retry", first)
    assert desk.claim() == []


def test_scheduled_jobs_take_from_the_limit_when_they_are_due(desk: Desk) -> None:
    desk.limit("api", concurrency=1).task("api")
    desk.enqueue(3, delay="1 minute")
    assert desk.claim() == []
    desk.database.move_time("61 seconds")
    assert len(desk.claim()) == 1
    assert desk.claim() == []


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"cost": {"tokens": -1}}, "TL032"),
        ({"cost": {"tokens": 1.5}}, "TL032"),
        ({"cost": {"pages": 1}}, "TL032"),
        ({"cost": {"tokens": 2000}}, "TL033"),
        ({"task": "keyed"}, "TL031"),
        ({"task": "lost"}, "TL030"),
        ({"task": "free", "cost": {"tokens": 1}}, "TL032"),
    ],
)
def test_what_could_never_run_is_refused(desk: Desk, fields: dict[str, Any], code: str) -> None:
    """A cost below zero or over the whole limit, a limit or a key that is not there."""
    desk.limit("api", tokens_per_minute=1000, concurrency=1).task("api")
    desk.limit("model/{model}", concurrency=1)
    desk.task("model/{model}", task="keyed").task("nowhere", task="lost").task(task="free")
    with pytest.raises(psycopg.Error) as refused:
        desk.enqueue(1, **fields)
    assert refused.value.sqlstate == code
    assert rows.count(desk.behind, "waiting") == 0


@pytest.mark.parametrize(
    "parts",
    [
        {"requests_per_minute": -1},
        {"requests_per_minute": 1.5},
        {"requests_per_minute": "60"},
        {"pages": 1},
        {"concurrency": 1_000_000},
    ],
)
def test_a_limit_that_cannot_be_is_refused(desk: Desk, parts: dict[str, Any]) -> None:
    """CP-100: negative limits are refused when they are written."""
    with pytest.raises(psycopg.Error) as refused:
        desk.set_limit("api", parts)
    assert refused.value.sqlstate == "TL028"
    assert desk.operator.value("select count(*) from trunkline.limits") == 0


def test_explain_names_the_limit_and_the_time(desk: Desk) -> None:
    desk.limit("api", requests_per_minute=2).task("api")
    desk.worker.value("select trunkline.register_worker('w', p_pulse_interval => '1 hour')")
    desk.enqueue(2)
    last = desk.enqueue(3)[-1]
    assert len(desk.claim()) == 2
    row = desk.operator.connection.execute(
        "select reason, until - trunkline.clock(), detail from trunkline.explain(%s)", (last,)
    ).fetchone()
    assert row is not None
    reason, wait, detail = row
    assert (reason, detail["limit"], detail["ahead"]) == ("limit", "api", 2)
    # Two windows, less what the machine took to get here.
    assert 61 < wait.total_seconds() < 125


def test_explain_names_the_limit_that_really_holds_a_fair_job(desk: Desk) -> None:
    """It waits in its tenant's line, but not for that."""
    desk.limit("fair:exports/{tenant}").limit("exports", concurrency=1)
    desk.task("fair:exports/{tenant}", "exports")
    desk.worker.value("select trunkline.register_worker(p_worker => 'w')")
    desk.enqueue(1, tenant="a")
    (waits,) = desk.enqueue(1, tenant="b")
    assert len(desk.claim()) == 1
    limit = "select detail ->> 'limit' from trunkline.explain(%s)"
    assert desk.operator.value(limit, waits) == "exports"


def test_a_sleeping_worker_knows_when_a_window_opens(desk: Desk) -> None:
    desk.limit("api", requests_per_minute=1).task("api")
    desk.worker.connection.execute(
        "select trunkline.register_worker(p_worker => 'w', p_pulse_interval => '1 second')"
    )
    desk.enqueue(2)
    assert len(desk.claim()) == 1
    wait = desk.worker.value("select trunkline.sleep('w') - trunkline.clock()")
    # A window, less what the machine took to get here.
    assert 5 < wait.total_seconds() <= 62

"""A job that a lowered limit can never let start does not stand in the way of others for ever."""

from typing import Any

import pytest

from tests.flow.conftest import Desk


def sweep(desk: Desk) -> None:
    desk.operator.value("select trunkline.sweep_gates()")


def dead(desk: Desk) -> list[Any]:
    return desk.operator.connection.execute(
        "select job_id, reason from trunkline.dead_letters order by job_id"
    ).fetchall()


@pytest.mark.parametrize(
    ("parts", "lower", "cost"),
    [
        ({"requests_per_minute": 100}, {"requests_per_minute": 9}, {"requests": 10}),
        ({"tokens_per_hour": 100}, {"tokens_per_hour": 9}, {"tokens": 10}),
        ({"quota": 100}, {"quota": 10}, {"units": 10}),
    ],
)
def test_what_never_fits_any_more_is_dead_with_that_reason(
    desk: Desk, parts: dict[str, Any], lower: dict[str, Any], cost: dict[str, int]
) -> None:
    desk.limit("api", **parts).task("api")
    large = desk.producer.enqueue(cost=cost).job_id
    small = desk.producer.enqueue(cost={"requests": 1}).job_id
    desk.limit("api", **lower)
    # The large one at the head is not overtaken, and does not fit.
    assert desk.claim() == []
    sweep(desk)
    assert dead(desk) == [(large, "cost_over_limit")]
    assert desk.claimed() == [small]
    event = desk.operator.connection.execute(
        "select kind, to_state, detail from trunkline.events where job_id = %s", (large,)
    ).fetchall()
    assert [(kind, state, detail["limit"]) for kind, state, detail in event] == [
        ("outgrown", "dead", "api")
    ]


def test_many_go_in_one_sweep_and_the_rest_stays_in_order(desk: Desk) -> None:
    desk.limit("model/{model}", tokens_per_minute=100).task("model/{model}")
    jobs = [
        {
            "task": "work",
            "payload": {"model": "ab"[n % 2]},
            "cost": {"tokens": 50 if n % 3 else 1},
            "priority": n % 4,
        }
        for n in range(300)
    ]
    ids = [row.job_id for row in desk.producer.enqueue_many(jobs)]
    desk.limit("model/a", tokens_per_minute=40)
    sweep(desk)
    gone = {job for job, _ in dead(desk)}
    expected = {job for n, job in enumerate(ids) if n % 2 == 0 and n % 3}
    # Only heads are looked at: some that fit may stand before others that do not.
    assert gone <= expected
    claimed: list[Any] = []
    for _ in range(200):
        claimed += [job for job in desk.claimed() if job in set(ids[::2])]
        sweep(desk)
        desk.database.move_time("63 seconds")
        if {job for job, _ in dead(desk)} == expected and len(claimed) == 50:
            break
    assert {job for job, _ in dead(desk)} == expected
    assert len(claimed) == 50


def test_a_key_is_free_again_and_the_letter_can_be_tried_again(desk: Desk) -> None:
    desk.limit("api", tokens_per_minute=100).task("api")
    job = desk.producer.enqueue(cost={"tokens": 60}, unique_key="u").job_id
    desk.limit("api", tokens_per_minute=50)
    sweep(desk)
    assert dead(desk) == [(job, "cost_over_limit")]
    desk.limit("api", tokens_per_minute=100)
    assert desk.operator.change("retry", job).state == "ready"
    assert desk.claimed() == [job]


def test_what_waits_for_a_limit_of_zero_or_fits_is_left_alone(desk: Desk) -> None:
    """A limit of zero is a provider switched off for now."""
    desk.limit("api", requests_per_minute=100, concurrency=1).task("api")
    jobs = desk.enqueue(3, cost={"requests": 50})
    desk.limit("api", requests_per_minute=0)
    sweep(desk)
    assert dead(desk) == []
    desk.limit("api", requests_per_minute=50)
    sweep(desk)
    assert desk.claimed() == jobs[:1]


def test_a_job_that_somebody_holds_is_passed_by(desk: Desk) -> None:
    desk.limit("api", tokens_per_minute=100).task("api")
    held, other = desk.enqueue(2, cost={"tokens": 60})
    desk.limit("api", tokens_per_minute=50)
    with desk.behind.transaction():
        desk.behind.execute(
            "select from trunkline_internal.waiting where job_id = %s for update", (held,)
        )
        sweep(desk)
        assert dead(desk) == [(other, "cost_over_limit")]
    sweep(desk)
    assert {job for job, _ in dead(desk)} == {held, other}

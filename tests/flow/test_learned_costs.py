"""What jobs of a task turned out to take is what the next ones are charged, unless they say it."""

from typing import Any

import pytest

from tests.flow.conftest import Desk


def learned(desk: Desk, gate: str, *, tokens: int, units: int = 0) -> None:
    desk.behind.execute(
        "insert into trunkline_internal.estimates (task, gate, tokens, units, updated_at)"
        " values ('work', trunkline_internal.gate_of(%s), %s, %s, now())",
        (gate, tokens, units),
    )


def need(desk: Desk, **fields: Any) -> list[int]:
    """What a job will be charged: requests, tokens, units; in a batch the same."""
    alone = desk.producer.enqueue(**fields).job_id
    (batch,) = desk.producer.enqueue_many([{"task": "work", **fields}])
    found = desk.behind.execute(
        "select distinct need[1:3] from trunkline_internal.waiting where job_id in (%s, %s)",
        (alone, batch.job_id),
    ).fetchall()
    assert len(found) == 1
    return list(found[0][0])


def test_what_was_learned_goes_before_the_tasks_cost(desk: Desk) -> None:
    """RF-59: the task's own number is only a first guess."""
    desk.limit("api", tokens_per_minute=10_000).task("api", cost={"tokens": 500, "requests": 2})
    assert need(desk) == [2, 500, 0]
    learned(desk, "api", tokens=1234, units=8)
    assert need(desk) == [2, 1234, 8]


def test_what_a_job_says_goes_before_what_was_learned(desk: Desk) -> None:
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
    for gate, tokens in (("slots", 1), ("api", 22), ("all", 333)):
        learned(desk, gate, tokens=tokens)
    assert need(desk) == [1, 22, 0]

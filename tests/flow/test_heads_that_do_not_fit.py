"""A job that does not fit one of its limits hides no job of another limit from a small claim."""

from __future__ import annotations

import pytest

from tests.support.calls import Calls
from tests.support.databases import Database


@pytest.fixture
def calls(database: Database) -> Calls:
    """Limits b and c have 30 tokens left; d has five slots."""
    calls = Calls(database.superuser())
    for name, parts in (
        ("a", '{"concurrency": 9}'),
        ("b", '{"tokens_per_minute": 100}'),
        ("c", '{"tokens_per_minute": 100}'),
        ("d", '{"concurrency": 5}'),
    ):
        calls.value("select trunkline.set_limit(%s, %s)", name, parts)
    calls.register("drain", limits=["b", "c"], cost={"tokens": 70})
    calls.register("three", limits=["a", "b", "c"], cost={"tokens": 70})
    calls.register("one", limits=["b"], cost={"tokens": 70})
    calls.register("small", limits=["d"])
    calls.enqueue("drain")
    assert len(calls.claim("w", 1).jobs) == 1
    return calls


@pytest.mark.parametrize("task", ["one", "three"])
@pytest.mark.parametrize("size", [1, 2])
def test_no_claim_is_empty_while_a_job_of_another_limit_fits(
    calls: Calls, task: str, size: int
) -> None:
    calls.fill(3, task=task)
    left = {*calls.fill(4, task="small")}
    while left:
        claimed = calls.claim("w", size).jobs
        assert claimed
        assert left.issuperset(claimed)
        left -= {*claimed}
    assert calls.claim("w", size).jobs == []


def test_a_job_that_does_not_fit_is_not_overtaken_within_its_limit(calls: Calls) -> None:
    """Small jobs behind it would keep it from ever starting."""
    calls.fill(1, task="one")
    calls.enqueue("one", cost={"tokens": 5})
    assert calls.claim("w", 1).jobs == []

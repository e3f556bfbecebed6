"""Limits that a task brings along: concurrency, a fair share, a breaker (RF-85)."""

from typing import Any

import pytest

from trunkline import Breaker, Trunkline
from trunkline.db.calls.produce import register_tasks
from trunkline.errors import InvalidTask


def declared(**arguments: Any) -> Any:
    """The policy of a task with these arguments, on an application that never connects."""

    @Trunkline("host=nowhere.invalid").task(**arguments)
    async def read(document: str) -> None:
        raise NotImplementedError

    return read


def test_a_number_is_the_concurrency_of_the_task() -> None:
    policy = declared(concurrency=3).policy
    assert policy.limits == ("task/read",)
    assert policy.declares == {"task/read": {"concurrency": 3}}


def test_concurrency_by_key() -> None:
    policy = declared(concurrency={"document/{document}": 1}).policy
    assert policy.limits == ("document/{document}",)
    assert policy.declares == {"document/{document}": {"concurrency": 1}}


def test_a_fair_share_comes_first_and_is_one_for_its_queue() -> None:
    policy = declared(limit=["openai"], fair=True, concurrency=2, queue="pages").policy
    assert policy.limits == ("fair:pages/{tenant}", "openai", "task/read")
    assert policy.declares == {
        "fair:pages/{tenant}": {"weight": 1},
        "task/read": {"concurrency": 2},
    }


def test_a_breaker_is_declared_in_either_form() -> None:
    """RF-85, RF-86: ten failures within ten minutes, one probe after a minute."""
    assert declared(breaker=True).policy.declares == {
        "task/read": {
            "breaker_failures": 10,
            "breaker_share": 0.2,
            "breaker_window": "600.000000 seconds",
            "breaker_probe_after": "60.000000 seconds",
        }
    }
    said = Breaker(failures=3, share=0, window="1h", probe_after=5)
    parts = declared(breaker=said, concurrency=4).policy.declares["task/read"]
    assert parts == {
        "concurrency": 4,
        "breaker_failures": 3,
        "breaker_share": 0,
        "breaker_window": "3600.000000 seconds",
        "breaker_probe_after": "5.000000 seconds",
    }


def test_a_task_without_limits_declares_nothing() -> None:
    for arguments in ({}, {"fair": False, "breaker": False}):
        policy = declared(**arguments).policy
        assert (policy.limits, policy.declares) == (None, None)
    # An empty list takes limits away that the task had.
    assert declared(limit=[]).policy.limits == ()


def test_what_is_declared_reaches_the_engine() -> None:
    (document,) = register_tasks([declared(concurrency=3).policy]).parameters
    assert '"declares":{"task/read":{"concurrency":3}}' in document
    (document,) = register_tasks([declared().policy]).parameters
    assert "declares" not in document


@pytest.mark.parametrize(
    ("arguments", "limit"),
    [
        ({}, None),
        ({"limit": "openai"}, "openai"),
        (
            {"limit": ["fair:default/{tenant}", "task/read", "openai/{document}"]},
            "openai/{document}",
        ),
        ({"fair": True, "concurrency": {"document/{document}": 1}}, None),
        ({"fair": True, "concurrency": 3, "limit": ["openai", "budget"]}, "openai"),
    ],
)
def test_calls_take_of_the_first_limit_that_is_a_providers(
    arguments: dict[str, Any], limit: str | None
) -> None:
    assert declared(**arguments).limit == limit


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"concurrency": 0}, "concurrency of read is 0"),
        ({"concurrency": -1}, "concurrency of read is -1"),
        ({"concurrency": 1.5}, "concurrency of read is 1.5"),
        ({"concurrency": True}, "concurrency of read is True"),
        ({"concurrency": "3"}, "concurrency of read is '3'"),
        ({"concurrency": {"document/{document}": 0}}, "concurrency of read is 0"),
        ({"concurrency": {1: 1}}, "A key of concurrency of read is 1"),
        ({"concurrency": {"": 1}}, "A key of concurrency of read is ''"),
        ({"fair": "tenant"}, "fair of read is 'tenant'"),
        ({"breaker": 5}, "breaker of read is int"),
        ({"breaker": {"failures": 5}}, "breaker of read is dict"),
        ({"breaker": Breaker(failures=0)}, "failures is 0"),
        ({"breaker": Breaker(failures=True)}, "failures is True"),
        ({"breaker": Breaker(failures=2.5)}, "failures is 2.5"),  # type: ignore[arg-type]
        ({"breaker": Breaker(share=2)}, "share is 2"),
        ({"breaker": Breaker(share=-0.1)}, "share is -0.1"),
        ({"breaker": Breaker(share=True)}, "share is True"),
        ({"breaker": Breaker(share=False)}, "share is False"),
        ({"breaker": Breaker(share="0.2")}, "share is '0.2'"),  # type: ignore[arg-type]
        ({"breaker": Breaker(window="often")}, "'often' is not a duration"),
        ({"breaker": Breaker(window="59s")}, "window is '59s'"),
        ({"breaker": Breaker(window="86401s")}, "window is '86401s'"),
        ({"breaker": Breaker(probe_after=0)}, "probe_after is 0"),
        ({"breaker": Breaker(probe_after="86401s")}, "probe_after is '86401s'"),
        ({"limit": ["openai", "openai"]}, "twice: openai"),
        ({"limit": "a/{b}", "concurrency": {"a/{b}": 1}}, "twice: a/{b}"),
        ({"limit": "task/read", "concurrency": 1}, "twice: task/read"),
        ({"limit": [""]}, "A limit of read is ''"),
        ({"limit": [5]}, "A limit of read is 5"),
        ({"name": "read {all}", "concurrency": 1}, "has braces"),
        ({"limits": "openai"}, "has no argument limits"),
        ({"cost": {"tokens": 5}}, "a cost but no limit"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidTask) as caught:
        declared(**arguments)
    assert problem in str(caught.value)
    assert caught.value.hint

"""Limits and costs as an application declares them."""

from typing import Any

import pytest

from tests.client.twins import Hands, Twin
from tests.support.internals.usage import costs_of_waiting
from trunkline import Trunkline
from trunkline.errors import CostOverLimit, InvalidArgument, InvalidCost, UnknownLimit


def _limit(hands: Hands, name: str, parts: str = '{"tokens_per_minute": 1000}') -> None:
    hands.value("select trunkline.set_limit(%s, %s::jsonb)", name, parts)


def _costs(hands: Hands) -> list[list[int] | None]:
    costs = costs_of_waiting(hands.connection)
    return [None if cost is None else [cost.requests, cost.tokens] for cost in costs]


def test_a_cost_is_a_number_a_function_or_an_option_of_one_job(
    twin: Twin, app: Trunkline, hands: Hands
) -> None:
    _limit(hands, "api")

    @app.task(limit="api", cost={"tokens": 7})
    async def plain(text: str) -> None: ...

    @app.task(limit=["api"], cost=lambda text, copies: {"tokens": len(text) * copies})
    async def reckoned(text: str, copies: int = 2) -> None: ...

    twin(twin.of(plain).enqueue("abc"))
    twin(twin.of(plain).options(cost={"tokens": 9, "requests": 3}).enqueue("abc"))
    twin(twin.of(reckoned).enqueue("abc"))
    twin(twin.of(reckoned).enqueue(text="abc", copies=5))
    twin(twin.of(reckoned).options(cost={"tokens": 1}).enqueue("abc"))
    many = [twin.of(reckoned).request("abcd"), twin.of(reckoned).request("a", copies=1)]
    twin(twin.of(reckoned).enqueue_many(many))
    assert _costs(hands) == [[1, 7], [3, 9], [1, 6], [1, 15], [1, 1], [1, 8], [1, 1]]


def test_what_cannot_be_taken_is_refused(twin: Twin, app: Trunkline, hands: Hands) -> None:
    _limit(hands, "api")

    @app.task(limit="api")
    async def work() -> None: ...

    @app.task(limit="nowhere")
    async def lost() -> None: ...

    @app.task
    async def free() -> None: ...

    cases: list[tuple[Any, Any, type[Exception]]] = [
        (work, {"tokens": 1001}, CostOverLimit),
        (work, {"tokens": -1}, InvalidCost),
        (work, 5, InvalidArgument),
        (free, {"tokens": 1}, InvalidCost),
        (lost, {"tokens": 1}, UnknownLimit),
    ]
    for task, cost, error in cases:
        with pytest.raises(error):
            twin(twin.of(task).options(cost=cost).enqueue())
    assert _costs(hands) == []


def test_limits_stay_unless_the_code_declares_none(
    twin: Twin, app: Trunkline, hands: Hands
) -> None:
    _limit(hands, "api")
    hands.register("work", limits=["api"])

    @app.task
    async def work() -> None: ...

    twin(twin.of(work).enqueue())
    assert _costs(hands) == [[1, 0]]

    @app.task(name="other", limit=[])
    async def other() -> None: ...

    hands.register("other", limits=["api"])
    twin(twin.of(other).enqueue())
    assert costs_of_waiting(hands.connection, task="other") == [None]

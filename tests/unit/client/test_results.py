"""A stored result comes back as the type the handler is annotated with."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pydantic
import pytest

from trunkline import Cancel, Snooze
from trunkline.client.codec import encode
from trunkline.client.signature import Schema
from trunkline.errors import ResultMismatch


@dataclass
class Receipt:
    number: int
    at: datetime


class Total(pydantic.BaseModel):
    amount: Decimal


def stored(value: Any) -> Any:
    """As the driver hands it back."""
    return msgspec.json.decode(encode(value))


def receipt() -> Receipt: ...  # type: ignore[empty-body]
def total() -> Total: ...  # type: ignore[empty-body]
def receipts() -> list[Receipt]: ...  # type: ignore[empty-body]
def names() -> dict[int, str]: ...  # type: ignore[empty-body]
def by_key() -> dict[UUID, Decimal]: ...  # type: ignore[empty-body]
def maybe() -> Receipt | None: ...
def later() -> Receipt | Snooze | Cancel: ...  # type: ignore[empty-body]
def nothing() -> None: ...
def untold(): ...  # type: ignore[no-untyped-def]


RECEIPT = Receipt(7, datetime(2026, 1, 2, tzinfo=UTC))


@pytest.mark.parametrize(
    ("handler", "value"),
    [
        (receipt, RECEIPT),
        (total, Total(amount=Decimal("1.10"))),
        (receipts, [RECEIPT]),
        (names, {1: "one"}),
        (by_key, {UUID(int=1): Decimal("2.5")}),
        (maybe, RECEIPT),
        (maybe, None),
        (later, RECEIPT),
        (nothing, None),
        (untold, {"any": ["thing"]}),
    ],
)
def test_results_come_back_as_they_went(handler: Callable[..., Any], value: Any) -> None:
    assert Schema("task", handler).result(stored(value)) == value


@pytest.mark.parametrize(
    ("handler", "value"),
    [(receipt, 5), (receipt, {"number": 1}), (nothing, 5), (names, {"one": "x"}), (total, {})],
)
def test_a_result_of_another_shape_is_told(handler: Callable[..., Any], value: Any) -> None:
    with pytest.raises(ResultMismatch, match="The result does not fit task") as caught:
        Schema("task", handler).result(value)
    assert caught.value.code == "result_mismatch"
    assert "app.jobs.get" in caught.value.hint


def test_a_type_that_json_cannot_bring_back_gives_what_json_has() -> None:
    def place() -> Path: ...  # type: ignore[empty-body]

    assert Schema("task", place).result("a/b") == "a/b"

"""A stored result comes back as the type the handler is annotated with."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, TypedDict
from uuid import UUID

import msgspec
import pydantic
import pytest

from trunkline import Cancel, Snooze
from trunkline.client.signature import Schema
from trunkline.errors import ResultMismatch, WrongResult
from trunkline.model.codec import encode


@dataclass
class Receipt:
    number: int
    at: datetime


class Total(pydantic.BaseModel):
    amount: Decimal


class Aliased(pydantic.BaseModel):
    amount: int = pydantic.Field(alias="theAmount")


class Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True)
    at: datetime
    amounts: tuple[Decimal, ...]


class Computed(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    amount: int

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def double(self) -> int:
        return 2 * self.amount


class Secret(pydantic.BaseModel):
    amount: int
    token: str = pydantic.Field(exclude=True)


@dataclass
class Positive:
    amount: int

    def __post_init__(self) -> None:
        if self.amount < 0:
            raise LookupError("below zero")


class Sums(TypedDict):
    total: int


class Box(msgspec.Struct):
    size: int


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
def only_later() -> Snooze | Cancel: ...  # type: ignore[empty-body]
def strict() -> Strict: ...  # type: ignore[empty-body]
def computed() -> list[Computed]: ...  # type: ignore[empty-body]
def secret() -> Secret | None: ...
def positive() -> Positive: ...  # type: ignore[empty-body]
def model() -> pydantic.BaseModel: ...  # type: ignore[empty-body]
def sums() -> Sums: ...  # type: ignore[empty-body]
def box() -> Box: ...  # type: ignore[empty-body]
def share() -> float: ...  # type: ignore[empty-body]
def pair() -> tuple[int, str]: ...  # type: ignore[empty-body]
def aliased() -> list[Aliased]: ...  # type: ignore[empty-body]
def anything() -> Any: ...
def opaque() -> object: ...
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
def test_a_result_of_another_shape_is_reported(handler: Callable[..., Any], value: Any) -> None:
    with pytest.raises(ResultMismatch, match="The result does not fit task") as caught:
        Schema("task", handler).result(value)
    assert caught.value.code == "result_mismatch"
    assert "app.jobs.get" in caught.value.hint


def test_a_type_that_json_cannot_bring_back_gives_what_json_has() -> None:
    def place() -> Path: ...  # type: ignore[empty-body]

    assert Schema("task", place).result("a/b") == "a/b"


@pytest.mark.parametrize(
    ("handler", "value"),
    [
        (receipt, RECEIPT),
        (receipt, {"number": 7, "at": "2026-01-02T00:00:00Z"}),
        (total, Total(amount=Decimal("1.10"))),
        (aliased, [Aliased(theAmount=3)]),
        (names, {1: "one"}),
        (by_key, {UUID(int=1): Decimal("2.5")}),
        (maybe, None),
        (sums, {"total": 3, "more": "is ignored"}),
        (box, Box(3)),
        (share, 1),
        (pair, [1, "one"]),
        (nothing, None),
        # As set by a transaction: ctx.result.
        (nothing, 5),
        (only_later, None),
        (strict, Strict(at=datetime(2026, 1, 2, tzinfo=UTC), amounts=(Decimal(1),))),
        (computed, [Computed(amount=3)]),
        # It cannot be read back, but it is what the handler declares.
        (secret, Secret(amount=3, token="t")),
        (model, Total(amount=Decimal(1))),
        # A result without a type that JSON can be read as is stored as it is.
        (anything, "five"),
        (opaque, {"a": 1}),
        (untold, [1]),
        (untold, None),
    ],
)
def test_a_result_whose_json_reads_as_the_annotation_is_accepted(
    handler: Callable[..., Any], value: Any
) -> None:
    document = Schema("task", handler).encode_result(value)
    assert document == (None if value is None else encode(value).decode())


@pytest.mark.parametrize(
    ("handler", "value", "kept"),
    [
        (receipt, 5, "5"),
        (receipt, None, "null"),
        (receipt, Box(3), '{"size":3}'),
        (box, Box("three"), '{"size":"three"}'),  # type: ignore[arg-type]
        (share, "1", '"1"'),
        (sums, {"total": "3"}, '{"total":"3"}'),
        (sums, {}, "{}"),
        (total, {"sum": 1}, '{"sum":1}'),
        (pair, (1, 2), "[1,2]"),
        (later, [], "[]"),
        (strict, {"at": 5, "amounts": []}, '{"at":5,"amounts":[]}'),
        (computed, [{"amount": 3, "triple": 9}], '[{"amount":3,"triple":9}]'),
        (secret, {"amount": 3}, '{"amount":3}'),
        (secret, Secret.model_construct(amount=3), '{"amount":3}'),
        (positive, {"amount": -1}, '{"amount":-1}'),
    ],
)
def test_a_result_that_nobody_could_read_is_refused_and_kept(
    handler: Callable[..., Any], value: Any, kept: str
) -> None:
    with pytest.raises(WrongResult, match="The result of task does not match") as caught:
        Schema("task", handler).encode_result(value)
    assert (caught.value.code, caught.value.value) == ("wrong_result", kept)


def test_a_long_wrong_result_is_cut() -> None:
    with pytest.raises(WrongResult) as caught:
        Schema("task", share).encode_result("x" * 100_000)
    assert caught.value.value == '"' + "x" * 3998 + "…"

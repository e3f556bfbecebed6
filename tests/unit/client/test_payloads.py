"""The signature of a handler is the schema of its payload, strictly."""

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, TypedDict
from uuid import UUID

import msgspec
import pydantic
import pytest

from trunkline import SyncContext
from trunkline.client.signature import Schema
from trunkline.errors import PayloadMismatch


@dataclass
class Line:
    article: str
    pieces: int = 1


@dataclass
class Order:
    number: int
    lines: list[Line] = field(default_factory=list)


class Address(msgspec.Struct):
    city: str
    zip_code: str | None = None


class Options(TypedDict, total=False):
    colour: str
    size: int


class Customer(pydantic.BaseModel):
    name: str
    age: int = pydantic.Field(ge=0)


NAIL = Line("nail")


class Kind(enum.Enum):
    NEW = "new"
    OLD = "old"


def everything(  # noqa: PLR0917 - one of each
    number: int,
    price: Decimal,
    day: date,
    moment: datetime,
    span: timedelta,
    key: UUID,
    raw: bytes,
    kind: Kind,
    order: Order,
    address: Address,
    options: Options,
    customer: Customer,
    tags: set[str],
    pair: tuple[int, str],
    by_id: dict[int, str],
    mode: Literal["fast", "slow"],
    small: Annotated[int, msgspec.Meta(lt=10)],
    anything: Any,
    nothing: None,
) -> None: ...


EVERYTHING: dict[str, Any] = {
    "number": 5,
    "price": Decimal("1.20"),
    "day": date(2026, 1, 2),
    "moment": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    "span": timedelta(seconds=90),
    "key": UUID(int=7),
    "raw": b"\x00\xff",
    "kind": Kind.OLD,
    "order": Order(1, [Line("nail", 100)]),
    "address": Address("Lyon"),
    "options": {"colour": "red"},
    "customer": Customer(name="Ann", age=30),
    "tags": {"a"},
    "pair": (1, "x"),
    "by_id": {1: "one"},
    "mode": "slow",
    "small": 9,
    "anything": [1, {"deep": None}],
    "nothing": None,
}


def test_every_supported_type_comes_back_as_it_went() -> None:
    schema = Schema("everything", everything)
    assert schema.decode(schema.encode((), EVERYTHING)) == EVERYTHING


def takes(kind: Any) -> Schema:
    def handler(value: Any) -> None: ...

    handler.__annotations__["value"] = kind
    return Schema("take", handler)


@pytest.mark.parametrize(
    ("kind", "value", "sentence"),
    [
        (int, "5", "Expected `int`, got `str`"),
        (int, 5.5, "Expected `int`, got `float`"),
        (int, True, "Expected `int`, got `bool`"),
        (int, None, "Expected `int`, got `null`"),
        (float, float("nan"), "JSON has no number nan"),
        (str, 5, "Expected `str`, got `int`"),
        (bool, 1, "Expected `bool`, got `int`"),
        (Literal["a"], "b", "Invalid enum value 'b'"),
        (Kind, "neu", "Invalid enum value 'neu'"),
        (date, "tomorrow", "Invalid RFC3339"),
        (UUID, "42", "Invalid UUID"),
        (Annotated[int, msgspec.Meta(lt=10)], 10, "<= 9"),
        (Order, {"number": 1, "lines": [{"article": 7}]}, r"\$\.value\.lines\[0\]\.article"),
        (Address, {"town": "Lyon"}, "missing required field `city`"),
        (Options, {"size": "L"}, r"\$\.value\.size"),
        (Customer, {"name": "Ann", "age": -1}, "greater than or equal to 0"),
        (Customer, {"name": "Ann"}, "Field required"),
        (list[int], [1, "2"], r"\$\.value\[1\]"),
        (Any, object(), "object is not JSON"),
        (Any, {1: {2j}}, "is not JSON"),
        (Any, "a\x00b", "NUL"),
        (Any, "\udce9", "surrogates"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_sent(
    kind: Any, value: Any, sentence: str
) -> None:
    with pytest.raises(PayloadMismatch, match=sentence) as caught:
        takes(kind).encode((value,), {})
    assert caught.value.code == "payload_mismatch"
    assert "take" in str(caught.value)
    assert caught.value.hint


def test_a_backslash_before_zeroes_is_no_nul() -> None:
    schema = takes(str)
    assert schema.decode(schema.encode((r"\u0000",), {})) == {"value": r"\u0000"}
    with pytest.raises(PayloadMismatch, match="NUL"):
        schema.encode(("\\\x00",), {})


def test_a_very_deep_value_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(PayloadMismatch):
        takes(Any).encode((deep,), {})


def plain(to: str, copies: int = 1, *, urgent: bool = False) -> None: ...
def with_context(ctx: SyncContext, to: str, copies: int = 1, *, urgent: bool = False) -> None: ...


@pytest.mark.parametrize("handler", [plain, with_context])
def test_arguments_are_bound_as_python_binds_them(handler: Callable[..., Any]) -> None:
    schema = Schema("send", handler)
    assert schema.takes_context is (handler is with_context)
    assert schema.names == ("to", "copies", "urgent")
    assert schema.encode(("a",), {}) == b'{"to":"a"}'
    assert schema.encode(("a", 2), {"urgent": True}) == b'{"to":"a","copies":2,"urgent":true}'
    assert schema.decode('{"to": "a"}') == {"to": "a"}
    assert schema.with_defaults({"to": "a"}) == {"to": "a", "copies": 1, "urgent": False}


@pytest.mark.parametrize(
    ("args", "kwargs", "sentence"),
    [
        ((), {}, "missing a required argument: 'to'"),
        (("a", 1, True), {}, "too many positional arguments"),
        (("a",), {"to": "b"}, "multiple values for argument 'to'"),
        (("a",), {"cc": "b"}, "unexpected keyword argument 'cc'"),
        (("a",), {"ctx": None}, "unexpected keyword argument 'ctx'"),
    ],
)
def test_a_wrong_call_is_refused_with_the_signature(
    args: tuple[Any, ...], kwargs: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(PayloadMismatch, match=sentence) as caught:
        Schema("send", with_context).encode(args, kwargs)
    assert "send(to: str, copies: int = 1, *, urgent: bool = False)" in str(caught.value)


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ('{"to": "a", "cc": "b"}', "unknown field `cc`"),
        ("{}", "missing required field `to`"),
        ('{"to": null}', "Expected `str`, got `null`"),
        ('{"to": "a", "copies": null}', "copies"),
        ("[]", "Expected `object`, got `array`"),
        ("", "data was truncated"),
    ],
)
def test_a_stored_payload_of_another_shape_is_refused(document: str, sentence: str) -> None:
    with pytest.raises(PayloadMismatch, match=sentence):
        Schema("send", plain).decode(document)


def test_a_task_without_parameters_takes_an_empty_payload_only() -> None:
    def sweep() -> None: ...

    schema = Schema("sweep", sweep)
    assert schema.decode("{}") == {}
    with pytest.raises(PayloadMismatch, match="unknown field `x`"):
        schema.decode('{"x": 1}')


def test_parameters_without_annotation_take_what_json_has() -> None:
    def loose(value, other=None): ...  # type: ignore[no-untyped-def]

    schema = Schema("loose", loose)
    assert schema.decode(schema.encode(({"a": [1]},), {})) == {"value": {"a": [1]}}


def test_models_may_be_optional_or_have_defaults() -> None:
    def greet(
        customer: Customer | None = None, others: tuple[Customer, ...] = (), line: Line = NAIL
    ) -> None: ...

    schema = Schema("greet", greet)
    ann = Customer(name="Ann", age=3)
    assert schema.decode("{}") == {}
    assert schema.decode(schema.encode((ann, (ann,)), {})) == {"customer": ann, "others": (ann,)}
    assert schema.decode('{"customer": null}') == {"customer": None}

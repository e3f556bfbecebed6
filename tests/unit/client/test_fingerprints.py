"""The fingerprint of a payload: the same for the same code, another for another payload."""

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pydantic
import pytest

from tests.support.processes import REPOSITORY
from trunkline import SyncContext
from trunkline.client.signature import Schema
from trunkline.errors import PayloadMismatch


@dataclass
class Item:
    name: str
    # Defaults have no fixed text, and the payload does not show them.
    parts: "list[Item]" = field(default_factory=lambda: [*()])


@dataclass
class Moved:
    """The same as Item under another name."""

    name: str
    parts: "list[Moved]" = field(default_factory=lambda: [*()])


class Size(Enum):
    SMALL = "small"


class Sizes(Enum):
    SMALL = "small"
    LARGE = "large"


class Options(TypedDict):
    size: Literal["small", "large"]


class Box(msgspec.Struct):
    size: int


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    size: int
    check: Any = print
    # Another one in every process.
    at: float = time.time()


class Corner(pydantic.BaseModel):
    """Where it is."""

    x: int
    title: str = pydantic.Field("a", description="A field whose name is also a keyword.")


class Shape(pydantic.BaseModel):
    """Some lines about it."""

    corners: list[Corner]
    kind: Literal["open", "closed"] = "open"
    inner: "Shape | None" = None


class Point(pydantic.BaseModel):
    title: str = "b"
    x: int


class Figure(pydantic.BaseModel):
    """Shape with other words, names, defaults and another order."""

    inner: "Figure | None" = pydantic.Field(None, title="Within", examples=[None])
    kind: Literal["closed", "open"] = "closed"
    corners: list[Point]


class Untitled(pydantic.BaseModel):
    x: int


class Pair(msgspec.Struct):
    a: int
    b: str


class Reordered(msgspec.Struct):
    b: str
    a: int


class Row(msgspec.Struct, array_like=True):
    a: int
    b: int


class Column(msgspec.Struct, array_like=True):
    b: int
    a: int


def pair(one: Pair, other: int | str | None = None) -> None: ...
def reordered(other: str | int | None = None, *, one: Reordered) -> None: ...
def row(row: Row) -> None: ...
def column(row: Column) -> None: ...
def shape(shape: Shape) -> None: ...
def figure(shape: Figure) -> None: ...
def corner(at: Corner) -> None: ...
def untitled(at: Untitled) -> None: ...
def small(size: Literal["s", "m"]) -> None: ...
def large(size: Literal["m", "s"]) -> None: ...
def described(to: Annotated[str, msgspec.Meta(description="an address")]) -> None: ...
def plain(to: str) -> None: ...
def elsewhere(ctx: SyncContext, to: str) -> int: ...  # type: ignore[empty-body]
def more(to: str, colour: str) -> None: ...
def optional(to: str, colour: str = "red") -> None: ...
def other_default(to: str, colour: str = "blue") -> None: ...
def other_type(to: int) -> None: ...
def item(item: Item) -> None: ...
def moved(item: Moved) -> None: ...
def size(size: Size) -> None: ...
def sizes(size: Sizes) -> None: ...
def bounded(count: Annotated[int, msgspec.Meta(ge=1)]) -> None: ...
def unbounded(count: int) -> None: ...
def everything(a: Options, b: Box | None, c: Model, d: list[Item], e: Any = None) -> None: ...


def fingerprint(handler: Callable[..., Any]) -> str:
    return Schema("task", handler).fingerprint


def test_a_signature_also_differs_with_the_result() -> None:
    def letter(to: str) -> str: ...  # type: ignore[empty-body]
    def number(to: str) -> int: ...  # type: ignore[empty-body]

    first, second = (Schema("task", handler).signature.split(":") for handler in (letter, number))
    assert first[0] == second[0] == fingerprint(letter)
    assert first[1] != second[1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (plain, elsewhere),
        (plain, described),
        (optional, other_default),
        (item, moved),
        (pair, reordered),
        (small, large),
        (shape, figure),
    ],
)
def test_what_the_payload_does_not_show_makes_no_difference(
    one: Callable[..., Any], other: Callable[..., Any]
) -> None:
    assert fingerprint(one) == fingerprint(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (plain, more),
        (more, optional),
        (plain, optional),
        (plain, other_type),
        (size, sizes),
        (bounded, unbounded),
        (item, everything),
        (row, column),
        (corner, untitled),
    ],
)
def test_a_payload_of_another_shape_makes_a_difference(
    one: Callable[..., Any], other: Callable[..., Any]
) -> None:
    assert fingerprint(one) != fingerprint(other)


def test_every_process_with_the_same_code_has_the_same_fingerprint() -> None:
    code = (
        "from tests.unit.client.test_fingerprints import everything, fingerprint;"
        "print(fingerprint(everything))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=REPOSITORY
        ).stdout.strip()
        for _ in range(2)
    }
    assert found == {fingerprint(everything)}


def nested(to: str, item: Item | None = None, model: Model | None = None) -> None: ...


@pytest.mark.parametrize(
    ("payload", "misplaced"),
    [
        ("{}", "to"),
        ('{"to": "ann", "colour": "red"}', "colour"),
        ('{"to": "ann", "item": {}}', "item.name"),
        ('{"to": "ann", "item": {"name": "a", "parts": [{}]}}', "item.parts[0].name"),
        ('{"to": "ann", "model": {}}', "size"),
        ('{"to": "ann", "model": {"size": 1, "colour": "red"}}', "colour"),
        # A wrong type is wrong whatever else differs.
        ('{"to": 5}', None),
        ('{"colour": "red", "to": 5}', None),
        ('{"item": {}, "to": 5}', None),
        ('{"item": "small"}', None),
        ('{"to": "ann", "model": {"size": "large"}}', None),
        ("[]", None),
        ("{", None),
    ],
)
def test_a_worker_distinguishes_a_field_of_other_code_from_a_wrong_type(
    payload: str, misplaced: str | None
) -> None:
    with pytest.raises(PayloadMismatch) as caught:
        Schema("task", nested).decode(payload)
    assert caught.value.field == misplaced


def test_a_producer_is_refused_without_a_thought_of_other_code() -> None:
    with pytest.raises(PayloadMismatch) as caught:
        Schema("task", plain).encode((), {"to": "ann", "colour": "red"})
    assert caught.value.field is None

"""One call of the engine as a value: statement, parameters and how to read the answer.

Nothing here does input or output. The same value runs on a synchronous and on an asynchronous
connection (`trunkline.db.runner`), and `enqueue_many` also on a connection of the caller's own
(`trunkline.db.foreign`), so that each function of the engine is mirrored once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, LiteralString, TypeVar

import msgspec

__all__ = ["Call", "Row", "json_text", "nothing", "one", "rows_of", "scalar"]

T = TypeVar("T")

Row = tuple[Any, ...]

_encoder = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A statement with positional placeholders %s, each cast to its type."""

    sql: LiteralString
    parameters: Sequence[Any]
    decode: Callable[[Sequence[Row]], T]
    # Whether the answer is asked for in binary form: less work for the client, many rows or not.
    binary: bool = False


def json_text(value: object) -> str:
    """Encode for a parameter that is cast to jsonb."""
    return _encoder.encode(value).decode()


def scalar(rows: Sequence[Row]) -> Any:
    """The only column of the only row."""
    return rows[0][0]


def nothing(rows: Sequence[Row]) -> None:
    """Functions that return void."""


def one(make: Callable[..., T]) -> Callable[[Sequence[Row]], T]:
    """The only row, its columns as positional arguments."""
    return lambda rows: make(*rows[0])


def rows_of(make: Callable[..., T]) -> Callable[[Sequence[Row]], list[T]]:
    """Every row, its columns as positional arguments."""
    return lambda rows: [make(*row) for row in rows]

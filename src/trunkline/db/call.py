"""One call of the engine as a value: statement, parameters and how to read the answer.

Nothing here does input or output. The same value runs on a synchronous and on an asynchronous
connection (`trunkline.db.runner`), and `enqueue_many` also on a connection of the caller's own
(`trunkline.db.foreign`), so that each function of the engine is mirrored once.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, LiteralString, TypeVar

import msgspec

__all__ = ["Call", "Row", "json_text", "nothing", "one", "plain_text", "rows_of", "scalar"]

T = TypeVar("T")

Row = tuple[Any, ...]

_encoder = msgspec.json.Encoder()
# After an even number of backslashes, which stand for themselves.
_NUL: Final = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A statement with positional placeholders %s, each cast to its type."""

    sql: LiteralString
    parameters: Sequence[Any]
    decode: Callable[[Sequence[Row]], T]
    # Whether the answer is asked for in binary form: less work for the client, many rows or not.
    binary: bool = False


def json_text(value: object) -> str:
    """Encode for a parameter that is cast to jsonb, text in it as `plain_text` makes it."""
    try:
        text = _encoder.encode(value).decode()
    except UnicodeEncodeError:
        return json_text(_cleaned(value))
    return json_text(_cleaned(value)) if "\\u0000" in text and _NUL.search(text) else text


def plain_text(value: str | None) -> str | None:
    """Text as PostgreSQL can store it: NUL and lone surrogates become U+FFFD and `?`.

    Messages of exceptions have both: names of files that are not UTF-8, bytes read as text.
    """
    if value is None or (value.isprintable() and value.isascii()):
        return value
    return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _cleaned(value: Any) -> Any:
    match value:
        case str():
            return plain_text(value)
        case Mapping():
            return {_cleaned(key): _cleaned(item) for key, item in value.items()}
        case list() | tuple():
            return [_cleaned(item) for item in value]
        case _:
            return value


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

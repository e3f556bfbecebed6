"""One call of the engine as a value: a statement, its parameters and a decoder for the answer.

Nothing here does input or output. The same value runs on a synchronous and on an asynchronous
connection (`trunkline.db.runner`), and `enqueue_many` also on the caller's connection
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
# Matches \u0000 after an even number of backslashes, so that the last one is not escaped itself.
_NUL: Final = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A statement with positional placeholders %s, each cast to its type."""

    sql: LiteralString
    parameters: Sequence[Any]
    decode: Callable[[Sequence[Row]], T]
    # Whether the answer is requested in binary format, which is less work for the client.
    binary: bool = False


def json_text(value: object) -> str:
    """Encode a value for a parameter that is cast to jsonb; clean its text with `plain_text`."""
    try:
        text = _encoder.encode(value).decode()
    except UnicodeEncodeError:
        return json_text(_cleaned(value))
    return json_text(_cleaned(value)) if "\\u0000" in text and _NUL.search(text) else text


def plain_text(value: str | None) -> str | None:
    """Return text that PostgreSQL can store: NUL and lone surrogates become U+FFFD and `?`.

    Messages of exceptions may contain both: file names that are not UTF-8, bytes read as text.
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
    """Return the only column of the only row."""
    return rows[0][0]


def nothing(rows: Sequence[Row]) -> None:
    """Return None, for functions that return void."""


def one(make: Callable[..., T]) -> Callable[[Sequence[Row]], T]:
    """Return a decoder that calls `make` with the columns of the only row."""
    return lambda rows: make(*rows[0])


def rows_of(make: Callable[..., T]) -> Callable[[Sequence[Row]], list[T]]:
    """Return a decoder that calls `make` with the columns of every row."""
    return lambda rows: [make(*row) for row in rows]

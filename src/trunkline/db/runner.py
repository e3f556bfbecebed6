"""Runs a call on a psycopg connection."""

from collections.abc import Mapping
from typing import Any, Final, LiteralString, TypeVar

import psycopg
from psycopg.rows import tuple_row

from trunkline.db.call import Call, plain_text
from trunkline.db.translate import translated

__all__ = ["run", "run_async", "run_with", "run_with_async"]

T = TypeVar("T")

_SET: Final[LiteralString] = (
    "select set_config(s.name, s.value, true)"
    " from unnest(%s::text[], %s::text[]) as s (name, value)"
)


def run(connection: psycopg.Connection[Any], call: Call[T]) -> T:
    """Run a call. On a connection in autocommit outside a transaction, it commits at once."""
    with translated(), connection.cursor(row_factory=tuple_row, binary=call.binary) as cursor:
        cursor.execute(call.sql, call.parameters)
        return call.decode(cursor.fetchall())


async def run_async(connection: psycopg.AsyncConnection[Any], call: Call[T]) -> T:
    """Run a call on an asynchronous connection; otherwise the same as `run`."""
    with translated():
        async with connection.cursor(row_factory=tuple_row, binary=call.binary) as cursor:
            await cursor.execute(call.sql, call.parameters)
            return call.decode(await cursor.fetchall())


def run_with(connection: psycopg.Connection[Any], call: Call[T], settings: Mapping[str, str]) -> T:
    """Run it in a transaction that has these settings, and only this transaction."""
    with translated(), connection.transaction():
        connection.execute(_SET, _pairs(settings))
        return run(connection, call)


async def run_with_async(
    connection: psycopg.AsyncConnection[Any], call: Call[T], settings: Mapping[str, str]
) -> T:
    """The same on an asynchronous connection."""
    with translated():
        async with connection.transaction():
            await connection.execute(_SET, _pairs(settings))
            return await run_async(connection, call)


def _pairs(settings: Mapping[str, str]) -> tuple[list[str], list[str | None]]:
    return list(settings), [plain_text(value) for value in settings.values()]

"""Runs a call on a psycopg connection."""

from typing import Any, TypeVar

import psycopg
from psycopg.rows import tuple_row

from trunkline.db.call import Call
from trunkline.db.translate import translated

__all__ = ["run", "run_async"]

T = TypeVar("T")


def run(connection: psycopg.Connection[Any], call: Call[T]) -> T:
    """Run it; outside a transaction it commits by itself if the connection is in autocommit."""
    with translated(), connection.cursor(row_factory=tuple_row, binary=call.binary) as cursor:
        cursor.execute(call.sql, call.parameters)
        return call.decode(cursor.fetchall())


async def run_async(connection: psycopg.AsyncConnection[Any], call: Call[T]) -> T:
    """The same on an asynchronous connection."""
    with translated():
        async with connection.cursor(row_factory=tuple_row, binary=call.binary) as cursor:
            await cursor.execute(call.sql, call.parameters)
            return call.decode(await cursor.fetchall())

"""Arrays that are packed by hand arrive as the values they were made of."""

import struct
from uuid import UUID, uuid4

import psycopg
import pytest

from tests.support.databases import Database
from trunkline.db.packed import Integers, Uuids


@pytest.mark.parametrize("count", [0, 1, 3, 1000])
def test_the_server_reads_what_was_packed(database: Database, count: int) -> None:
    ids = [uuid4() for _ in range(count)]
    numbers = [(-1) ** n * n for n in range(count)]
    with psycopg.connect(database.dsn) as connection:
        row = connection.execute(
            "select %b::uuid[], %b::integer[]", (Uuids.of(ids), Integers.of(numbers))
        ).fetchone()
    assert row == (ids, numbers)


def test_ids_at_the_ends_of_their_range_keep_every_byte(database: Database) -> None:
    ids = [UUID(int=0), UUID(int=2**128 - 1), UUID(int=2**127)]
    with psycopg.connect(database.dsn) as connection:
        row = connection.execute("select %b::uuid[]", (Uuids.of(ids),)).fetchone()
    assert row == (ids,)


def test_a_number_that_is_no_integer_of_the_server_is_refused() -> None:
    with pytest.raises(struct.error):
        Integers.of([2**31])

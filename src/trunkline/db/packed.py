"""Arrays as the server reads them, packed by hand.

psycopg finds out for each element what it is and copies it twice: 1.6 µs a UUID, of the 13 that a
worker takes for a job that does nothing, and 1.3 an integer. Here it is 0.6 and 0.2.
"""

import struct
from collections.abc import Iterable, Sequence
from typing import Final
from uuid import UUID

import psycopg
from psycopg.adapt import Buffer, Dumper
from psycopg.pq import Format

__all__ = ["Integers", "Uuids"]

_UUID: Final = 2950
_INTEGER: Final = 23
_LENGTH_OF_UUID: Final = struct.pack("!i", 16)
_LENGTH_OF_INTEGER: Final = 4


def _header(kind: int, count: int) -> bytes:
    """Dimensions, no nulls, the type of the elements, how many, counted from one."""
    return struct.pack("!5i", 1, 0, kind, count, 1) if count else struct.pack("!3i", 0, 0, kind)


class Uuids(bytes):
    """A packed uuid[]."""

    @classmethod
    def of(cls, values: Sequence[UUID]) -> "Uuids":
        """Pack."""
        elements = b"".join([_LENGTH_OF_UUID + value.bytes for value in values])
        return cls(_header(_UUID, len(values)) + elements)


class Integers(bytes):
    """A packed integer[]."""

    @classmethod
    def of(cls, values: Sequence[int]) -> "Integers":
        """Pack."""
        elements = struct.pack(f"!{2 * len(values)}i", *_with_lengths(values))
        return cls(_header(_INTEGER, len(values)) + elements)


def _with_lengths(values: Iterable[int]) -> Iterable[int]:
    for value in values:
        yield _LENGTH_OF_INTEGER
        yield value


class _UuidsDumper(Dumper):
    oid = 2951
    format = Format.BINARY

    def dump(self, obj: Uuids) -> Buffer:
        """It is what it has to be."""
        return obj


class _IntegersDumper(Dumper):
    oid = 1007
    format = Format.BINARY

    def dump(self, obj: Integers) -> Buffer:
        """It is what it has to be."""
        return obj


# Only for these two types, which nobody else has.
psycopg.adapters.register_dumper(Uuids, _UuidsDumper)
psycopg.adapters.register_dumper(Integers, _IntegersDumper)

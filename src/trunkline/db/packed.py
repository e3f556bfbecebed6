"""Encodes arrays in PostgreSQL's binary format, faster than psycopg.

psycopg looks up the type of each element and copies it twice: 1.6 µs per UUID, of the 13 µs that a
worker takes for an empty job, and 1.3 µs per integer. This code takes 0.6 and 0.2.
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
    """Return dimensions, the flag for nulls, the element type, the length and the lower bound."""
    return struct.pack("!5i", 1, 0, kind, count, 1) if count else struct.pack("!3i", 0, 0, kind)


class Uuids(bytes):
    """A packed uuid[]."""

    @classmethod
    def of(cls, values: Sequence[UUID]) -> "Uuids":
        """Encode the values."""
        elements = b"".join([_LENGTH_OF_UUID + value.bytes for value in values])
        return cls(_header(_UUID, len(values)) + elements)


class Integers(bytes):
    """A packed integer[]."""

    @classmethod
    def of(cls, values: Sequence[int]) -> "Integers":
        """Encode the values."""
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
        """Return the value, which is already in wire format."""
        return obj


class _IntegersDumper(Dumper):
    oid = 1007
    format = Format.BINARY

    def dump(self, obj: Integers) -> Buffer:
        """Return the value, which is already in wire format."""
        return obj


# Registered globally, because only this module creates these two types.
psycopg.adapters.register_dumper(Uuids, _UuidsDumper)
psycopg.adapters.register_dumper(Integers, _IntegersDumper)

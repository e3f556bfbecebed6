"""Compares the objects of installed profiles, not their record, with the shipped scripts."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Final, LiteralString

from trunkline import profiles
from trunkline.profiles import objects
from trunkline.profiles.profile import statement
from trunkline.schema.difference import Difference
from trunkline.schema.session import Connection, connect

__all__ = ["verify"]

_SQL = files(__package__) / "sql"
_SCHEMAS: Final[LiteralString] = """
select n.nspname,
  has_schema_privilege(n.oid, 'usage') and has_table_privilege(c.oid, 'select')
from pg_class as c
join pg_namespace as n on n.oid = c.relnamespace
where c.relname = 'trunkline_profile_steps' and c.relowner = (
  select r.oid from pg_roles as r where r.rolname = 'trunkline_owner')
order by 1
"""


def verify(dsn: str) -> list[Difference]:
    """Return the differences of all installed profiles, in any schema.

    Only operators and readers can see which scripts were applied. For other roles, this checks
    only owners, row security and grants.
    """
    with connect(dsn) as connection:
        connection.execute("set transaction isolation level repeatable read, read only")
        rows = connection.execute(_SCHEMAS).fetchall()
        return [
            difference
            for schema, readable in rows
            for difference in _differences(connection, schema, readable=readable)
        ]


def _differences(connection: Connection, schema: str, *, readable: bool) -> Iterator[Difference]:
    expected = frozenset(_expected(connection, schema)) if readable else frozenset()
    for missing in sorted(expected - objects.present(connection, schema)):
        kind, _, name = missing.partition(" ")
        yield Difference("missing", kind, f"{schema}.{name}")
    yield from objects.flaws(connection, schema, expected)


def _expected(connection: Connection, schema: str) -> Iterator[str]:
    for name in profiles.NAMES:
        profile = profiles.get(name)
        query = statement(_SQL, "applied", schema).encode()
        applied = {
            (phase, script)
            for phase, script, _ in connection.execute(query, {"profile": profile.name})
        }
        for phase in profile.phases if applied else ():
            for script in profile.scripts(phase):
                if (phase.name, script.name) in applied:
                    yield from objects.declared(script)

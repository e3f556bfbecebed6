"""Rows of any internal table: count, read or delete them."""

from typing import Any

import psycopg

from tests.support.internals.tables import SCHEMA, table

__all__ = [
    "clear",
    "contents",
    "count",
    "digests",
    "of_tenant",
    "stored_characters",
    "unique_keys",
]

Superuser = psycopg.Connection[Any]

_TABLES = """
select c.relname from pg_class as c
where c.relnamespace = %s::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
"""


def count(superuser: Superuser, name: str, **equal: Any) -> int:
    """Count the rows of a table, or those with the given values."""
    where = " and ".join(f"{column} = %({column})s" for column in equal) or "true"
    query = f"select count(*) from {table(name)} where {where}".encode()
    row = superuser.execute(query, equal).fetchone()
    assert row is not None
    rows: int = row[0]
    return rows


def contents(superuser: Superuser, name: str) -> list[tuple[Any, ...]]:
    """Return all rows of a table, sorted by its first column."""
    return superuser.execute(f"select * from {table(name)} order by 1".encode()).fetchall()


def of_tenant(superuser: Superuser, name: str, tenant: str) -> list[str]:
    """Return the rows of a table that belong to the tenant, each as text."""
    query = f"select t::text from {table(name)} as t where t.tenant = %s order by 1".encode()
    return [str(row) for (row,) in superuser.execute(query, (tenant,))]


def digests(superuser: Superuser) -> dict[str, str]:
    """Return a digest of all rows of every table."""
    digest = "coalesce(md5(string_agg(t::text, ',' order by t::text)), '')"
    return {name: str(value) for name, value in _of_each_table(superuser, digest)}


def stored_characters(superuser: Superuser) -> int:
    """Count the characters of all rows of every table, including values stored out of line."""
    size = "coalesce(sum(length(t::text)), 0)"
    return sum(int(value) for _, value in _of_each_table(superuser, size))


def unique_keys(superuser: Superuser) -> list[tuple[str, str, Any]]:
    """Return the held unique keys as (task, key, job)."""
    return superuser.execute(
        f"select task, unique_key, job_id from {table('unique_keys')}".encode()
    ).fetchall()


def clear(superuser: Superuser, *names: str) -> None:
    """Delete all rows of these tables; truncating every partition would take longer."""
    superuser.execute("; ".join(f"delete from {table(name)}" for name in names).encode())


def _of_each_table(superuser: Superuser, aggregate: str) -> list[tuple[str, Any]]:
    aggregates: list[tuple[str, Any]] = []
    for (name,) in superuser.execute(_TABLES, (SCHEMA,)).fetchall():
        row = superuser.execute(f"select {aggregate} from {SCHEMA}.{name} as t".encode()).fetchone()
        assert row is not None
        aggregates.append((name, row[0]))
    return aggregates

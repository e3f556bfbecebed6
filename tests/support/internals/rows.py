"""Rows of any internal table: how many there are, all of them, or none."""

from typing import Any

import psycopg

from tests.support.internals.tables import SCHEMA, table, word

__all__ = ["contents", "count", "empty", "rows_of_tenant", "tables", "unique_keys"]

Superuser = psycopg.Connection[Any]


def count(superuser: Superuser, name: str, **equal: Any) -> int:
    """Count the rows of a table, or those whose columns have the given values."""
    where = " and ".join(f"{column} = %({column})s" for column in equal) or "true"
    query = f"select count(*) from {table(name)} where {where}".encode()
    row = superuser.execute(query, equal).fetchone()
    assert row is not None
    found: int = row[0]
    return found


def contents(superuser: Superuser, name: str) -> list[tuple[Any, ...]]:
    """Return all rows of a table, ordered by its first column."""
    return superuser.execute(f"select * from {table(name)} order by 1".encode()).fetchall()


def rows_of_tenant(superuser: Superuser, name: str, tenant: str) -> list[str]:
    """Return the rows of one tenant as text."""
    query = f"select t::text from {table(name)} as t where t.tenant = %s order by 1".encode()
    return [str(row[0]) for row in superuser.execute(query, (tenant,))]


def empty(superuser: Superuser, *names: str) -> None:
    """Delete all rows of the tables."""
    for name in names:
        superuser.execute(f"delete from {table(name)}".encode())


def tables(superuser: Superuser) -> dict[str, str]:
    """Return all tables without their partitions: the product's word and the qualified name."""
    rows = superuser.execute(
        "select c.oid::regclass::text from pg_class as c"
        " where c.relnamespace = %s::regnamespace and c.relkind in ('r', 'p')"
        " and not c.relispartition",
        (SCHEMA,),
    )
    return {word(name): name for (name,) in rows}


def unique_keys(superuser: Superuser) -> list[tuple[str, str, Any]]:
    """Return the held unique keys as (task, key, job)."""
    return superuser.execute(
        f"select task, unique_key, job_id from {table('unique_keys')}".encode()
    ).fetchall()

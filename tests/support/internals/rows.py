"""Rows of any internal table: how many there are, all of them, or none."""

from typing import Any

import psycopg

from tests.support.internals.tables import table

__all__ = ["count", "unique_keys"]

Superuser = psycopg.Connection[Any]


def count(superuser: Superuser, name: str, **equal: Any) -> int:
    """Count the rows of a table, or those whose columns have the given values."""
    where = " and ".join(f"{column} = %({column})s" for column in equal) or "true"
    query = f"select count(*) from {table(name)} where {where}".encode()
    row = superuser.execute(query, equal).fetchone()
    assert row is not None
    found: int = row[0]
    return found


def unique_keys(superuser: Superuser) -> list[tuple[str, str, Any]]:
    """Return the held unique keys as (task, key, job)."""
    return superuser.execute(
        f"select task, unique_key, job_id from {table('unique_keys')}".encode()
    ).fetchall()

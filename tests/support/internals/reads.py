"""PostgreSQL's counts of reads of internal tables."""

from typing import Any

import psycopg

from tests.support.internals.tables import SCHEMA

__all__ = ["of_all_sessions", "of_transaction"]

Superuser = psycopg.Connection[Any]

# Reads of a partition count for its table.
_OF_TRANSACTION = """
select coalesce(p.parent, s.relname), sum(coalesce(s.seq_tup_read, 0))::bigint,
  sum(coalesce(s.idx_tup_fetch, 0))::bigint
from pg_stat_xact_all_tables as s
left join trunkline_internal.partitions as p on p.partition = s.relname
where s.schemaname = 'trunkline_internal'
group by 1
"""
_OF_ALL_SESSIONS = """
select
  (
    select coalesce(sum(s.seq_tup_read), 0) from pg_stat_user_tables as s
    where s.schemaname = any(%(schemas)s)
  ) + (
    select coalesce(sum(s.idx_tup_read), 0) from pg_stat_user_indexes as s
    where s.schemaname = any(%(schemas)s)
  ),
  (
    select sum(s.heap_blks_hit + s.heap_blks_read + s.idx_blks_hit + s.idx_blks_read)
    from pg_statio_user_tables as s
    where s.schemaname = any(%(schemas)s)
  )
"""


def of_transaction(superuser: Superuser) -> dict[str, tuple[int, int]]:
    """Return the rows read in this transaction by table, as (without an index, by an index)."""
    rows = superuser.execute(_OF_TRANSACTION).fetchall()
    return {table: (read, fetched) for table, read, fetched in rows}


def of_all_sessions(superuser: Superuser, *schemas: str) -> tuple[int, int]:
    """Return the rows and buffers that all ended sessions have read, also in these schemas."""
    row = superuser.execute(_OF_ALL_SESSIONS, {"schemas": [SCHEMA, *schemas]}).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])

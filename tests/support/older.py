"""A database whose schema was installed before the baseline."""

from typing import Any

import psycopg

__all__ = ["CONTRACT_SQL", "NO_MIGRATIONS_SQL", "apply"]

# The last state before the baseline: thirty migrations and contract 4, with the same tables.
CONTRACT_SQL = """
create or replace function trunkline.schema_version() returns trunkline.schema_version_info
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$ select (30, 4, 1)::trunkline.schema_version_info $$
"""
NO_MIGRATIONS_SQL = "delete from trunkline_internal.schema_migrations"
_MIGRATIONS = """
insert into trunkline_internal.schema_migrations (version, name, sha256, breaking)
select n, case n when 1 then 'foundation' else 'step_' || n end, repeat('0', 64), false
from generate_series(1, 30) as n
"""


def apply(superuser: psycopg.Connection[Any]) -> None:
    """Turn a fresh database into one from before the baseline."""
    superuser.execute(CONTRACT_SQL)
    superuser.execute(NO_MIGRATIONS_SQL)
    superuser.execute(_MIGRATIONS)

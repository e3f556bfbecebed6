"""A database whose schema was upgraded by a later release than this package."""

from typing import Any

import psycopg

__all__ = ["RELEASE", "apply_contract", "apply_migration", "apply_release"]

RELEASE = "9.8.7"

_CONTRACT = """
create or replace function trunkline.schema_version() returns trunkline.schema_version_info
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$ select ({version}, 99, {oldest})::trunkline.schema_version_info $$
"""


def apply_contract(
    superuser: psycopg.Connection[Any], *, oldest: int, version: int | None = None
) -> None:
    """Raise the contract; clients below ``oldest`` are no longer supported.

    With ``version``, nothing else is newer: the schema has that version and the same release.
    """
    superuser.execute(_CONTRACT.format(oldest=oldest, version=version or 99).encode())
    if version is None:
        apply_release(superuser)


def apply_release(superuser: psycopg.Connection[Any]) -> None:
    """Record a later release, as if its functions had been applied over the same tables."""
    superuser.execute(
        "update trunkline_internal.schema_release set release = %s, ordinal = '{9,8,7,0,0}'",
        (RELEASE,),
    )


def apply_migration(superuser: psycopg.Connection[Any]) -> None:
    """Record a migration that this package does not have."""
    superuser.execute(
        "insert into trunkline_internal.schema_migrations (version, name, sha256, breaking)"
        " select max(version) + 1, 'later', repeat('0', 64), false"
        " from trunkline_internal.schema_migrations"
    )

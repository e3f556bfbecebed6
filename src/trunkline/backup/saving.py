"""``trunkline db backup``: save the whole database and its roles from one snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import psycopg

from trunkline.backup import catalog, programs, roles
from trunkline.backup.archive import Manifest, draft
from trunkline.backup.catalog import Connection
from trunkline.errors import BackupFailed, BackupHidesRows, DatabaseUnreachable, SchemaMissing
from trunkline.schema.session import is_installed

__all__ = ["Saved", "save"]


@dataclass(frozen=True, slots=True)
class Saved:
    """The contents of a backup."""

    file: Path
    size: int
    server: int
    program: int
    rows: dict[str, int]


def save(dsn: str, file: Path, *, force: bool = False) -> Saved:
    """Write the database that ``dsn`` names, and the roles it needs, to ``file``.

    The dump and the row counts come from one snapshot. Jobs can run in the meantime.
    """
    # Check that the folder is writable and the name is free before reading anything.
    with draft(file, force=force) as writing, _snapshot(dsn) as connection:
        server = catalog.major(connection)
        program = programs.find("pg_dump", server=server)
        bypasses = _bypasses_policies(connection)
        if not bypasses and (tables := catalog.hidden(connection)):
            raise BackupHidesRows(
                "Row-level security hides rows from this role in " + ", ".join(tables)
            )
        owners = catalog.owners(connection)
        try:
            rows = catalog.count_rows(connection)
        except psycopg.errors.InsufficientPrivilege as error:
            raise BackupFailed(
                str(error.diag.message_primary),
                hint="Connect as a role that may read every table of the database.",
            ) from error
        manifest = Manifest(
            trunkline=version("trunkline"),
            created_at=datetime.now(UTC).isoformat(),
            database=connection.info.dbname,
            server=server,
            program=program.major,
            rows=rows,
            extensions=catalog.extensions(connection),
            owners=owners,
            roles=roles.roles(connection, owners),
            memberships=roles.memberships(connection, owners),
            settings=roles.settings(connection, owners),
            grants=roles.grants(connection),
        )
        writing.manifest(manifest)
        arguments = ["--format=custom", f"--snapshot={_exported(connection)}"]
        if not bypasses:
            # Policies apply; we have checked that they show every row.
            arguments.append("--enable-row-security")
        with programs.running(program, dsn, arguments) as process:
            size = writing.dump(process.output)
    return Saved(file, size, server, program.major, manifest.rows)


@contextmanager
def _snapshot(dsn: str) -> Iterator[Connection]:
    try:
        connection: Connection = psycopg.connect(dsn, application_name="trunkline backup")
    except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
        raise DatabaseUnreachable(str(error).strip()) from error
    with connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        if not is_installed(connection):
            raise SchemaMissing("This database has no Trunkline schema")
        yield connection


def _bypasses_policies(connection: Connection) -> bool:
    row = connection.execute(
        "select r.rolsuper or r.rolbypassrls from pg_roles as r where r.rolname = current_user"
    ).fetchone()
    return row is not None and bool(row[0])


def _exported(connection: Connection) -> str:
    row = connection.execute("select pg_export_snapshot()").fetchone()
    return str(row[0]) if row else ""

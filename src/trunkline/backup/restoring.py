"""``trunkline db restore``: load a backup into an empty database, all or nothing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from trunkline.backup import catalog, programs, roles
from trunkline.backup.archive import Archive, Manifest
from trunkline.backup.catalog import Connection
from trunkline.errors import (
    BackupError,
    DatabaseUnreachable,
    RestoreIncomplete,
    RestoreRefused,
    RestoreTargetNotEmpty,
)

__all__ = ["Restored", "restore"]

_OWNER = "trunkline_owner"
# Number of objects to list if the target is not empty.
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Restored:
    """The result of a restore, and the steps left to an administrator."""

    rows: dict[str, int]
    created_roles: tuple[str, ...]
    # Roles that could log in at the source and need LOGIN here.
    logins: tuple[str, ...]
    notes: tuple[str, ...]


def restore(dsn: str, file: Path, *, installer: str | None = None) -> Restored:
    """Load the backup in ``file`` into the empty database that ``dsn`` names.

    ``installer`` is the role that maintains the schema from now on, by default the connecting
    role. It becomes a member of trunkline_owner, as after an installation.
    """
    with Archive(file) as archive, _connected(dsn) as connection:
        manifest = archive.manifest
        server = catalog.major(connection)
        _require_fit(connection, manifest, server)
        program = programs.find("pg_restore", server=server, at_least=manifest.program)
        if program.major > server:
            raise RestoreRefused(
                f"The backup was written by pg_dump {manifest.program}, and the server is "
                f"PostgreSQL {server}: no pg_restore supports both",
                hint=f"Restore into PostgreSQL {program.major}, or repeat the backup with the "
                f"client programs of PostgreSQL {server} in TRUNKLINE_PG_BINDIR.",
            )
        outcome = roles.create(connection, manifest)
        try:
            with _owning(connection, manifest):
                _load(archive, program, dsn)
        except BaseException:
            roles.drop(connection, outcome)
            raise
        roles.finish(connection, manifest, outcome)
        rows = _counted(connection, manifest)
        _adopt(connection, installer)
    return Restored(rows, tuple(outcome.created), tuple(outcome.logins), tuple(outcome.notes))


@contextmanager
def _connected(dsn: str) -> Iterator[Connection]:
    try:
        connection: Connection = psycopg.connect(
            dsn, autocommit=True, application_name="trunkline restore"
        )
    except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
        raise DatabaseUnreachable(str(error).strip()) from error
    with connection:
        yield connection


def _require_fit(connection: Connection, manifest: Manifest, server: int) -> None:
    if contents := catalog.contents(connection):
        shown = ", ".join(contents[:_SHOWN]) + (", …" if len(contents) > _SHOWN else "")
        raise RestoreTargetNotEmpty(f"{connection.info.dbname} is not empty: it has {shown}")
    if server < manifest.server:
        raise RestoreRefused(
            f"The backup is of PostgreSQL {manifest.server}; the target is {server}",
            hint=f"Restore into PostgreSQL {manifest.server} or newer.",
        )
    available = {
        name for (name,) in connection.execute("select e.name from pg_available_extensions as e")
    }
    if missing := [name for name in manifest.extensions if name not in available]:
        raise RestoreRefused(
            "The target server lacks extensions: " + ", ".join(missing),
            hint="Install their packages on the server, or drop them from the source first.",
        )


def _load(archive: Archive, program: programs.Program, dsn: str) -> None:
    arguments = ["--single-transaction", "--exit-on-error"]
    with (
        programs.running(program, dsn, arguments, reads=True) as process,
        archive.dump() as stream,
    ):
        shutil.copyfileobj(stream, process.input, 1 << 20)


@contextmanager
def _owning(connection: Connection, manifest: Manifest) -> Iterator[None]:
    """Let a role that is not a superuser create objects for other owners during the block.

    It must be able to SET ROLE to each owner, and owners of schemas need CREATE on the database.
    """
    superuser = connection.execute(
        "select r.rolsuper from pg_roles as r where r.rolname = current_user"
    ).fetchone()
    # Statements to run after the block, and those to run only if it fails.
    undo: list[sql.Composed] = []
    withdraw: list[sql.Composed] = []
    try:
        if superuser is None or not superuser[0]:
            _become_owners(connection, manifest, undo, withdraw)
        yield
    except BaseException:
        undo += withdraw
        raise
    finally:
        for statement in reversed(undo):
            connection.execute(statement)


def _become_owners(
    connection: Connection,
    manifest: Manifest,
    undo: list[sql.Composed],
    withdraw: list[sql.Composed],
) -> None:
    database = sql.Identifier(connection.info.dbname)
    sixteen = catalog.major(connection) >= 16
    options = sql.SQL(" with inherit true, set true" if sixteen else "")
    for owner in manifest.owners:
        name = sql.Identifier(owner)
        right = "set" if sixteen else "member"
        row = connection.execute(
            "select pg_has_role(%(owner)s, %(right)s) and pg_has_role(%(owner)s, 'usage'),"
            " has_database_privilege(%(owner)s, current_database(), 'create')",
            {"owner": owner, "right": right},
        ).fetchone()
        member, creates = row or (False, False)
        try:
            if not member:
                connection.execute(sql.SQL("grant {} to current_user{}").format(name, options))
                # The restoring role maintains the schema from now on.
                (withdraw if owner == _OWNER else undo).append(
                    sql.SQL("revoke {} from current_user").format(name)
                )
            if not creates:
                connection.execute(
                    sql.SQL("grant create on database {} to {}").format(database, name)
                )
                undo.append(sql.SQL("revoke create on database {} from {}").format(database, name))
        except psycopg.errors.InsufficientPrivilege as error:
            raise RestoreRefused(
                f"This role cannot create objects of {owner}: {error.diag.message_primary}",
                hint="Restore as a superuser, or as the owner of the database with CREATEROLE and "
                f"let an administrator run: grant {owner} to {connection.info.user};",
            ) from error


def _counted(connection: Connection, manifest: Manifest) -> dict[str, int]:
    with connection.transaction():
        connection.execute("set transaction isolation level repeatable read")
        rows = catalog.count_rows(connection)
    if rows != manifest.rows:
        differing = [
            f"{table} has {rows.get(table, 0)} rows instead of {manifest.rows.get(table, 0)}"
            for table in sorted(rows.keys() | manifest.rows.keys())
            if rows.get(table) != manifest.rows.get(table)
        ]
        raise RestoreIncomplete("; ".join(differing))
    return rows


def _adopt(connection: Connection, installer: str | None) -> None:
    """Record the installer and translate stored transaction ids to this server."""
    try:
        with connection.transaction():
            roles.adopt_installer(connection, installer)
        connection.execute("select trunkline.after_restore()")
        connection.execute("analyze")
    except psycopg.DatabaseError as error:
        message = error.diag.message_primary or str(error).strip()
        raise BackupError(
            f"The rows are restored, but the last step failed: {message}",
            hint="Run as a member of trunkline_owner: select trunkline.after_restore();",
        ) from error

"""One connection, one transaction, and errors that name the failed step and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from trunkline.db.conninfo import parse
from trunkline.errors import (
    DatabaseUnreachable,
    InstallationRefused,
    SchemaChangeFailed,
    SchemaError,
    SchemaLocked,
    from_sqlstate,
)
from trunkline.schema.plan import Step

__all__ = ["Connection", "connect", "is_installed", "lift_timeouts", "run"]

Connection = psycopg.Connection[tuple[Any, ...]]


@contextmanager
def connect(dsn: str) -> Iterator[Connection]:
    """Open a connection with one transaction, which commits at the end of the block."""
    parse(dsn)
    try:
        connection = psycopg.connect(dsn, application_name="trunkline schema")
    except psycopg.OperationalError as error:
        raise DatabaseUnreachable(str(error).strip()) from error
    # Override settings of the role, the database or the server for this transaction.
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    connection.read_only = False
    with connection:
        lift_timeouts(connection)
        connection.execute("set local row_security = on")
        yield connection


def lift_timeouts(connection: Connection) -> None:
    """Override timeouts of the role, the database or the server for this transaction."""
    # With SET and not with a query, which would fix the transaction's isolation level.
    connection.execute("set local statement_timeout = 0")
    if connection.info.server_version >= 170000:
        connection.execute("set local transaction_timeout = 0")


def is_installed(connection: Connection) -> bool:
    """Return whether there is a schema. Unlike to_regclass, this works for every role."""
    row = connection.execute(
        "select exists (select from pg_catalog.pg_class as c"
        " where c.relname = 'schema_migrations'"
        " and c.relnamespace = to_regnamespace('trunkline_internal'))"
    ).fetchone()
    return row is not None and bool(row[0])


def run(connection: Connection, step: Step) -> None:
    """Run all statements of a step."""
    try:
        # Without arguments psycopg sends the text unchanged, so it may have several statements.
        connection.execute(step.text.encode())
    except psycopg.Error as error:
        raise _translate(error, step) from error


def _translate(error: psycopg.Error, step: Step) -> SchemaError:
    diagnostic = error.diag
    message = diagnostic.message_primary or str(error)
    if isinstance(error, psycopg.errors.LockNotAvailable):
        what = f" ({diagnostic.context})" if diagnostic.context else ""
        return SchemaLocked(f"{step.name}: a lock was not free within the lock timeout{what}")
    refusal = from_sqlstate(
        error.sqlstate, message, diagnostic.message_detail, diagnostic.message_hint
    )
    if isinstance(refusal, InstallationRefused):
        return refusal
    line = None
    if diagnostic.statement_position:
        line = step.text.count("\n", 0, int(diagnostic.statement_position) - 1) + 1
    more = [text for text in (diagnostic.message_detail, diagnostic.message_hint) if text]
    return SchemaChangeFailed(step.name, "; ".join((message, *more)), line=line)

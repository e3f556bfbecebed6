"""Opens and prepares connections for the rest of the package."""

from __future__ import annotations

import time
import weakref
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final, LiteralString

import msgspec
import psycopg
from psycopg.types.json import set_json_loads

from trunkline.db.address import address
from trunkline.db.conninfo import parse
from trunkline.db.notices import heed
from trunkline.db.patient import (
    CALL_PATIENCE,
    PING_PATIENCE,
    AsyncPatientConnection,
    PatientConnection,
)
from trunkline.db.translate import translated, unreachable
from trunkline.errors import SchemaMissing
from trunkline.schema.contract import check_contract, check_contract_async

__all__ = [
    "check_if_idle",
    "check_if_idle_async",
    "configure",
    "configure_async",
    "connect",
    "connect_async",
    "open_async",
    "options",
]

# A connection attempt that starts during an outage hangs until its timeout, even if the outage ends
# before. So the timeout is short.
_CONNECT_TIMEOUT: Final = 5
# A peer that vanished is detected within about this many seconds.
_SILENCE: Final = 8
# A connection used within this time is assumed to be alive.
_FRESH: Final = 1.0

_PING: Final[LiteralString] = "select pg_backend_pid()"

# A role, a database or a server may set other defaults, with which nothing would work: functions
# that change state refuse a held snapshot, and forced row security cannot be off. Handlers keep the
# role's timeouts. These are not set behind a pooler, which shares its sessions.
_SETTINGS: Final[LiteralString] = (
    "select set_config('default_transaction_isolation', 'read committed', false),"
    " set_config('default_transaction_read_only', 'off', false),"
    " set_config('default_transaction_deferrable', 'off', false),"
    " set_config('idle_session_timeout', '0', false),"
    " set_config('row_security', 'on', false),"
    " set_config('client_encoding', 'UTF8', false)"
)
# No timeouts on connections that only call the engine: the client sets a deadline for each call.
# transaction_timeout exists from PostgreSQL 17 on.
_PATIENT: Final[LiteralString] = (
    "select set_config(s.name, '0', false) from pg_catalog.pg_settings as s"
    " where s.name in ('statement_timeout', 'lock_timeout', 'transaction_timeout')"
)

_last_used: weakref.WeakKeyDictionary[object, float] = weakref.WeakKeyDictionary()


def options(name: str, dsn: str) -> dict[str, Any]:
    """Return arguments for psycopg's connect: a name for pg_stat_activity, and short keepalives.

    Options that the connection string sets are left out, so that they take precedence.
    """
    defaults = {
        "autocommit": True,
        "fallback_application_name": name,
        "connect_timeout": _CONNECT_TIMEOUT,
        "keepalives_idle": _SILENCE // 2,
        "keepalives_interval": 1,
        "keepalives_count": 3,
        "tcp_user_timeout": _SILENCE * 1000,
    }
    fields = parse(dsn)
    return {option: value for option, value in defaults.items() if option not in fields}


@contextmanager
def connect(dsn: str, *, name: str = "trunkline") -> Iterator[PatientConnection]:
    """Open a synchronous connection in autocommit, to a schema that supports this client."""
    try:
        connection = PatientConnection.connect(dsn, **options(name, dsn))
    except psycopg.Error as error:
        raise unreachable(error) from error
    with connection:
        with _named(dsn), translated():
            configure(connection)
            if connection.prepare_threshold is not None:
                connection.execute(_PATIENT)
        connection.patience = CALL_PATIENCE
        yield connection


@asynccontextmanager
async def connect_async(
    dsn: str, *, name: str = "trunkline"
) -> AsyncIterator[AsyncPatientConnection]:
    """Open an asynchronous connection; otherwise the same as `connect`."""
    async with await open_async(dsn, name=name) as connection:
        yield connection


async def open_async(dsn: str, *, name: str) -> AsyncPatientConnection:
    """Open an asynchronous connection that the caller closes."""
    try:
        connection = await AsyncPatientConnection.connect(dsn, **options(name, dsn))
    except psycopg.Error as error:
        raise unreachable(error) from error
    try:
        with _named(dsn), translated():
            await configure_async(connection)
            if connection.prepare_threshold is not None:
                await connection.execute(_PATIENT)
    except BaseException:
        await connection.close()
        raise
    connection.patience = CALL_PATIENCE
    return connection


@contextmanager
def _named(dsn: str) -> Iterator[None]:
    """Add the address to SchemaMissing: this may be the wrong database."""
    try:
        yield
    except SchemaMissing as error:
        raise SchemaMissing(f"{error}: {address(dsn)}") from error


def configure(connection: PatientConnection) -> None:
    """Prepare a new connection: check the contract, and detect a pooler."""
    connection.patience = PING_PATIENCE
    set_json_loads(msgspec.json.decode, connection)
    heed(connection)
    row = connection.execute(_PING).fetchone()
    _stop_preparing_behind_a_pooler(connection, row)
    if connection.prepare_threshold is not None:
        connection.execute(_SETTINGS)
    check_contract(connection)


async def configure_async(connection: AsyncPatientConnection) -> None:
    """Prepare a new asynchronous connection; the same as `configure`."""
    connection.patience = PING_PATIENCE
    set_json_loads(msgspec.json.decode, connection)
    heed(connection)
    row = await (await connection.execute(_PING)).fetchone()
    _stop_preparing_behind_a_pooler(connection, row)
    if connection.prepare_threshold is not None:
        await connection.execute(_SETTINGS)
    await check_contract_async(connection)


def check_if_idle(connection: PatientConnection) -> None:
    """Check for a pool that a connection is alive, unless it was used a moment ago."""
    if _is_stale(connection):
        connection.patience = PING_PATIENCE
        connection.execute(_PING)


async def check_if_idle_async(connection: AsyncPatientConnection) -> None:
    """Check an asynchronous connection; the same as `check_if_idle`."""
    if _is_stale(connection):
        connection.patience = PING_PATIENCE
        await connection.execute(_PING)


def _is_stale(connection: object) -> bool:
    now = time.monotonic()
    last = _last_used.get(connection, 0.0)
    _last_used[connection] = now
    return now - last > _FRESH


def _stop_preparing_behind_a_pooler(
    connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any], row: Any
) -> None:
    """Do not prepare statements behind a pooler.

    In its transaction mode they fail, because the next transaction may use another server
    connection. A pooler invents the process number that it reports to clients, so it is detected by
    a number that differs from the server's own.
    """
    if row is None or row[0] != connection.info.backend_pid:
        connection.prepare_threshold = None

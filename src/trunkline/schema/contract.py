"""Checks whether the schema of a database supports this client."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, LiteralString

import psycopg

from trunkline.errors import (
    SchemaForbidden,
    SchemaMissing,
    SchemaNewerThanClient,
    SchemaOlderThanClient,
    SchemaPredatesBaseline,
)
from trunkline.version import __version__

__all__ = [
    "BASELINE_CONTRACT",
    "CONTRACT",
    "SchemaVersion",
    "check_contract",
    "check_contract_async",
    "judge",
    "newer_hint",
    "require_baseline",
    "require_served",
]

# The contract of this client. The shipped trunkline.schema_version() returns the same number.
CONTRACT: Final = 7
# The first contract of migrations/0001_baseline. No migration leads there from an earlier one.
BASELINE_CONTRACT: Final = 5

_QUERY: Final[LiteralString] = (
    "select v.version, v.contract, v.oldest_contract from trunkline.schema_version() as v"
)
_RELEASE: Final[LiteralString] = "select trunkline.schema_release()"
# Our direct connections set row_security themselves, but sessions of a pooler are shared.
_ROW_SECURITY: Final = (
    "Reset it where it is set and let the pooler reconnect: alter role NAME reset row_security; "
    "or alter database NAME reset row_security; (in psql, \\drds lists both)"
)
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """The result of trunkline.schema_version()."""

    version: int
    contract: int
    oldest_contract: int


def check_contract(connection: psycopg.Connection[Any]) -> SchemaVersion:
    """Read the schema's version and raise if it does not support this client."""
    try:
        with connection.transaction():
            row = connection.cursor(row_factory=psycopg.rows.tuple_row).execute(_QUERY).fetchone()
    except psycopg.errors.ProgrammingError as error:
        raise _reason(error) from error
    try:
        return judge(_version(row))
    except SchemaNewerThanClient as error:
        with suppress(psycopg.Error), connection.transaction():
            cursor = connection.cursor(row_factory=psycopg.rows.tuple_row)
            error.hint = _hint(cursor.execute(_RELEASE).fetchone())
        raise


async def check_contract_async(connection: psycopg.AsyncConnection[Any]) -> SchemaVersion:
    """The same as `check_contract` for an asynchronous connection."""
    try:
        async with connection.transaction():
            cursor = connection.cursor(row_factory=psycopg.rows.tuple_row)
            row = await (await cursor.execute(_QUERY)).fetchone()
    except psycopg.errors.ProgrammingError as error:
        raise _reason(error) from error
    try:
        return judge(_version(row))
    except SchemaNewerThanClient as error:
        with suppress(psycopg.Error):
            async with connection.transaction():
                cursor = connection.cursor(row_factory=psycopg.rows.tuple_row)
                error.hint = _hint(await (await cursor.execute(_RELEASE)).fetchone())
        raise


def judge(schema: SchemaVersion, *, contract: int = CONTRACT) -> SchemaVersion:
    """Raise if the schema does not support the client's contract; warn if it is newer."""
    require_served(schema, contract=contract)
    if schema.contract > contract:
        _logger.warning(
            "The schema (contract %d) is newer than this client (contract %d) and still supports"
            " it; upgrade the trunkline package",
            schema.contract,
            contract,
        )
    return schema


def require_served(schema: SchemaVersion, *, contract: int = CONTRACT) -> None:
    """Refuse a schema that does not support clients of this contract."""
    if contract >= BASELINE_CONTRACT:
        require_baseline(schema.contract)
    if schema.contract < contract:
        raise SchemaOlderThanClient(
            f"The schema has contract {schema.contract}; this client needs {contract}"
        )
    if contract < schema.oldest_contract:
        raise SchemaNewerThanClient(
            f"The schema supports clients from contract {schema.oldest_contract} on; "
            f"this client has {contract}"
        )


def require_baseline(contract: int) -> None:
    """Refuse the contract of a schema that was installed before the baseline."""
    if contract < BASELINE_CONTRACT:
        raise SchemaPredatesBaseline(
            f"The schema has contract {contract}, from before the baseline (contract"
            f" {BASELINE_CONTRACT}), and cannot be upgraded"
        )


def newer_hint(release: str | None) -> str:
    """Return the hint for a schema that no longer supports this package."""
    if not release or release == __version__:
        return SchemaNewerThanClient.hint
    return (
        f'Upgrade the package, which is {__version__}: pip install "trunkline>={release}".'
        " Do not change the schema: it cannot be downgraded."
    )


def _hint(row: tuple[Any, ...] | None) -> str:
    return newer_hint(None if row is None else row[0])


def _version(row: tuple[Any, ...] | None) -> SchemaVersion:
    if row is None:
        raise SchemaMissing("This database has no Trunkline schema")
    return SchemaVersion(*row)


def _reason(error: psycopg.errors.ProgrammingError) -> Exception:
    missing = (psycopg.errors.InvalidSchemaName, psycopg.errors.UndefinedFunction)
    if isinstance(error, missing):
        return SchemaMissing("This database has no Trunkline schema")
    if error.diag.source_function == "check_enable_rls":
        return SchemaForbidden(
            "row_security is off in this session, so no table of the schema can be read",
            hint=_ROW_SECURITY,
        )
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        message = error.diag.message_primary or str(error)
        return SchemaForbidden(f"The role of this connection may not use the schema: {message}")
    return error

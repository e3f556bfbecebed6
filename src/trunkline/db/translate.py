"""Translates errors of any driver into errors of this package."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import psycopg
import psycopg_pool

from trunkline.errors import (
    AccessDenied,
    ConnectionLost,
    DatabaseFull,
    DatabaseProblem,
    DatabaseReadOnly,
    DatabaseUnreachable,
    Refusal,
    SchemaForbidden,
    SchemaMissing,
    ServerNotReady,
    StatementCancelled,
    TooManyConnections,
    TransactionConflict,
    TrunklineError,
    from_sqlstate,
)

__all__ = ["from_driver", "translated", "unreachable"]

_BY_SQLSTATE: Final[dict[str, type[TrunklineError]]] = {
    "08000": ConnectionLost,
    "08003": ConnectionLost,
    "08006": ConnectionLost,
    "25006": DatabaseReadOnly,
    "28000": AccessDenied,
    "28P01": AccessDenied,
    "3F000": SchemaMissing,
    "40001": TransactionConflict,
    "40P01": TransactionConflict,
    "42501": SchemaForbidden,
    "42883": SchemaMissing,
    "42P01": SchemaMissing,
    "53100": DatabaseFull,
    "53300": TooManyConnections,
    "53400": TooManyConnections,
    "55P03": StatementCancelled,
    "57014": StatementCancelled,
    "57P01": ConnectionLost,
    "57P02": ConnectionLost,
    "57P03": ServerNotReady,
}

# The error of a refused connection has no SQLSTATE: libpq reports only the server's message.
_BY_SENTENCE: Final[tuple[tuple[re.Pattern[str], type[TrunklineError]], ...]] = (
    (re.compile(r"password authentication failed|no password|pg_hba\.conf"), AccessDenied),
    (re.compile(r'role "[^"]*" does not exist|not permitted to log in'), AccessDenied),
    (
        re.compile(r"starting up|shutting down|recovery mode|not (yet )?accepting conn"),
        ServerNotReady,
    ),
    (re.compile(r"session is read-only|server is in hot standby"), DatabaseReadOnly),
    (
        re.compile(r"too many clients|connection slots|too many connections|no more conn"),
        TooManyConnections,
    ),
    (re.compile(r"No space left on device"), DatabaseFull),
)


@contextmanager
def translated(refusals: Mapping[str, type[Refusal]] | None = None) -> Iterator[None]:
    """Raise our errors instead of the driver's; other errors pass."""
    try:
        yield
    except psycopg_pool.PoolTimeout as error:
        raise TooManyConnections(f"No connection became free in time: {error}") from error
    except psycopg.Error as error:
        raise from_driver(error, refusals) from error


def from_driver(
    error: BaseException, refusals: Mapping[str, type[Refusal]] | None = None
) -> TrunklineError:
    """Return our error for one of psycopg, psycopg2 or asyncpg."""
    sqlstate = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
    diagnostics = getattr(error, "diag", None)
    # The text of asyncpg's errors is message, detail and hint in one.
    message = (
        getattr(diagnostics, "message_primary", None)
        or getattr(error, "message", None)
        or str(error).strip()
    )
    detail = getattr(diagnostics, "message_detail", None) or getattr(error, "detail", None)
    hint = getattr(diagnostics, "message_hint", None) or getattr(error, "hint", None)
    if refusal := from_sqlstate(sqlstate, message, detail, hint, refusals):
        return refusal
    if sqlstate and (error_class := _BY_SQLSTATE.get(sqlstate)):
        return error_class(message)
    return _without_sqlstate(sqlstate, message, error)


def unreachable(error: Exception) -> TrunklineError:
    """Return our error for a failed attempt to connect."""
    translation = from_driver(error)
    if type(translation) in {DatabaseProblem, ConnectionLost}:
        return DatabaseUnreachable(f"Cannot connect: {_first_line(str(error))}")
    return translation


def _without_sqlstate(sqlstate: str | None, message: str, error: BaseException) -> TrunklineError:
    for sentence, error_class in _BY_SENTENCE:
        if sentence.search(message):
            return error_class(_first_line(message))
    # For errors of libpq itself, such as a lost socket, psycopg raises plain DatabaseError.
    broken = isinstance(error, psycopg.OperationalError) or type(error) is psycopg.DatabaseError
    if sqlstate is None and broken:
        return ConnectionLost(_first_line(message) or "the connection is closed")
    return DatabaseProblem(f"{message} ({sqlstate})" if sqlstate else message)


def _first_line(text: str) -> str:
    """Return the server's own message, without the prefix that libpq adds."""
    return text.strip().partition("\n")[0].rpartition("FATAL:  ")[2]

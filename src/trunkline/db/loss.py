"""Distinguishes the loss of our own database from every other error of a handler.

A handler may use other databases, whose errors count as its failures. So our connections mark the
errors they raise. Only marked errors count, and our own errors that were raised from them.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import psycopg

from trunkline.errors import DatabaseProblem, DatabaseUnreachable

__all__ = ["database_lost", "is_loss_state", "mark_own", "mark_within"]

# Connection errors, lack of resources (disk, memory, connections), read-only after a failover,
# shutdown, crash, cannot connect now, idle session timeout, file system error.
_CLASSES: Final = frozenset({"08", "53"})
_STATES: Final = frozenset({"25006", "57P01", "57P02", "57P03", "57P05", "58030"})
# The error of every later statement in a failed transaction.
_AFTERMATH: Final = frozenset({"25P02"})
_MARK: Final = "trunkline_mark"
_OWN: Final = "own"
_LOST: Final = "lost"
_DEEPEST: Final = 10


def mark_own(error: BaseException) -> None:
    """Record that one of our connections raised this error."""
    setattr(error, _MARK, _OWN)


def mark_within(connection: Any, error: BaseException) -> None:
    """Mark errors that follow from the loss: a closed connection or a failed transaction."""
    if not (connection.lost or connection.closed):
        return
    for cause in _chain(error):
        if isinstance(cause, psycopg.Error) and (
            cause.sqlstate is None or cause.sqlstate in _AFTERMATH
        ):
            setattr(cause, _MARK, _LOST)


def database_lost(error: BaseException) -> bool:
    """Return whether an error, or one of its causes, is the loss of our database.

    For an exception group, this must hold for all members.
    """
    for cause in _chain(error):
        if isinstance(cause, BaseExceptionGroup):
            return all(map(database_lost, cause.exceptions))
        if _is_loss(cause):
            return True
    return False


def is_loss_state(error: BaseException) -> bool:
    """Return whether a driver error means that a database, ours or another, is lost."""
    sqlstate = getattr(error, "sqlstate", None)
    if sqlstate is None:
        # psycopg raises plain DatabaseError for errors of libpq itself, such as a lost socket.
        broken = isinstance(error, psycopg.OperationalError)
        return broken or type(error) is psycopg.DatabaseError
    return sqlstate in _STATES or sqlstate[:2] in _CLASSES


def _is_loss(error: BaseException) -> bool:
    if isinstance(error, DatabaseUnreachable):
        return True
    if isinstance(error, DatabaseProblem):
        cause = error.__cause__
        return error.retryable or (isinstance(cause, psycopg.Error) and is_loss_state(cause))
    mark = getattr(error, _MARK, None)
    return mark == _LOST or (mark == _OWN and is_loss_state(error))


def _chain(error: BaseException | None) -> list[BaseException]:
    """Return an error and its causes; SQLAlchemy keeps the driver's error as `orig`."""
    chain: list[BaseException] = []
    while error is not None and len(chain) < _DEEPEST:
        if isinstance(error, asyncio.CancelledError):
            break
        chain.append(error)
        wrapped = getattr(error, "orig", None)
        if isinstance(wrapped, BaseException):
            error = wrapped
        elif error.__cause__ is not None or error.__suppress_context__:
            error = error.__cause__
        else:
            error = error.__context__
    return chain

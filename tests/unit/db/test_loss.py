"""Only the loss of our own database hands a job back; errors of other databases are failures."""

import asyncio
from dataclasses import dataclass

import psycopg
import pytest

from trunkline.db.loss import database_lost, is_loss_state, mark_own, mark_within
from trunkline.errors import DatabaseProblem, DatabaseUnreachable, StatementCancelled, UnknownJob

errors = psycopg.errors


class Shaped(Exception):
    """An error of another driver."""

    def __init__(self, **fields: object) -> None:
        super().__init__("x")
        for name, value in fields.items():
            setattr(self, name, value)


@dataclass
class Broken:
    lost: bool = False
    closed: bool = False


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (psycopg.OperationalError("gone"), True),
        (psycopg.DatabaseError("invalid socket"), True),
        (psycopg.DataError("NUL"), False),
        (psycopg.InterfaceError("closed"), False),
        (errors.AdminShutdown("x"), True),
        (errors.CrashShutdown("x"), True),
        (errors.CannotConnectNow("x"), True),
        (errors.IdleSessionTimeout("x"), True),
        (errors.IoError("x"), True),
        (errors.ReadOnlySqlTransaction("x"), True),
        (errors.ConnectionFailure("x"), True),
        (errors.DiskFull("x"), True),
        (errors.TooManyConnections("x"), True),
        (errors.QueryCanceled("x"), False),
        (errors.InFailedSqlTransaction("x"), False),
        (errors.UniqueViolation("x"), False),
        (Shaped(sqlstate="08006"), True),
        (Shaped(sqlstate="42P01"), False),
        (ValueError("x"), False),
    ],
)
def test_the_sqlstate_shows_whether_a_database_is_lost(error: Exception, expected: bool) -> None:
    assert is_loss_state(error) is expected
    # Not ours until one of our connections has marked it.
    assert database_lost(error) is False
    mark_own(error)
    assert database_lost(error) is expected


def _raised(error: BaseException, cause: BaseException | None = None) -> BaseException:
    error.__cause__ = cause
    return error


def _marked(error: BaseException) -> BaseException:
    mark_own(error)
    return error


def _within(error: BaseException, context: BaseException, *, suppressed: bool = False) -> Exception:
    error.__context__ = context
    error.__suppress_context__ = suppressed
    assert isinstance(error, Exception)
    return error


def _deep(levels: int) -> BaseException:
    error: BaseException = DatabaseUnreachable("gone")
    for _ in range(levels):
        error = _raised(ValueError("around"), error)
    return error


_GONE = DatabaseUnreachable("gone")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (_GONE, True),
        (UnknownJob("x"), False),
        (DatabaseProblem("x"), DatabaseProblem.retryable),
        (_raised(DatabaseProblem("x"), errors.DiskFull("x")), True),
        (_raised(DatabaseProblem("x"), errors.UniqueViolation("x")), False),
        (_raised(DatabaseProblem("x"), ValueError("x")), False),
        (_raised(StatementCancelled("x")), StatementCancelled.retryable),
        (_raised(ValueError("x"), _GONE), True),
        (_within(ValueError("x"), _GONE), True),
        (_within(ValueError("x"), _GONE, suppressed=True), False),
        (_raised(_within(ValueError("x"), _GONE), KeyError("y")), False),
        (Shaped(orig=_marked(errors.AdminShutdown("x"))), True),
        (Shaped(orig="no error"), False),
        (_raised(Shaped(orig=ValueError("x")), _GONE), False),
        (_raised(asyncio.CancelledError(), _GONE), False),
        (_raised(ValueError("x"), _raised(asyncio.CancelledError(), _GONE)), False),
        (_deep(9), True),
        (_deep(10), False),
        (ExceptionGroup("x", [_GONE, ValueError("x")]), False),
        (ExceptionGroup("x", [_GONE, _within(ValueError("x"), _GONE)]), True),
        (_raised(ValueError("x"), ExceptionGroup("x", [ValueError("y")])), False),
    ],
)
def test_an_error_is_a_loss_if_one_of_its_causes_is(error: BaseException, expected: bool) -> None:
    assert database_lost(error) is expected


@pytest.mark.parametrize(
    ("connection", "expected"),
    [(Broken(), False), (Broken(lost=True), True), (Broken(closed=True), True)],
)
def test_what_follows_from_a_loss_is_part_of_it(connection: Broken, expected: bool) -> None:
    closed = psycopg.OperationalError("the connection is closed")
    failed = errors.InFailedSqlTransaction("aborted")
    around = _raised(ValueError("x"), psycopg.InterfaceError("closed"))
    for error in (closed, failed, around):
        mark_within(connection, error)
        assert database_lost(error) is expected


def test_other_errors_on_a_lost_connection_stay_failures() -> None:
    for error in (ValueError("x"), errors.UniqueViolation("x")):
        mark_within(Broken(lost=True), error)
        assert not database_lost(error)

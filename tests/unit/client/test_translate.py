"""Errors of drivers become errors of ours; what a broken connection says is known as such."""

import psycopg
import pytest

from trunkline.db.translate import from_driver, unreachable
from trunkline.errors import (
    AccessDenied,
    ConnectionLost,
    DatabaseFull,
    DatabaseProblem,
    DatabaseUnreachable,
    ServerNotReady,
    TooManyConnections,
    TransactionConflict,
    TrunklineError,
)


class Foreign(Exception):
    """As asyncpg and psycopg2 carry the code."""

    def __init__(self, text: str, **fields: str) -> None:
        super().__init__(f"{text}\nDETAIL: more")
        for name, value in fields.items():
            setattr(self, name, value)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (psycopg.OperationalError("consuming input failed"), ConnectionLost),
        (psycopg.OperationalError(""), ConnectionLost),
        (psycopg.DatabaseError("invalid socket"), ConnectionLost),
        (psycopg.DataError("cannot contain NUL"), DatabaseProblem),
        (psycopg.errors.DeadlockDetected("deadlock detected"), TransactionConflict),
        (psycopg.errors.DiskFull("No space left"), DatabaseFull),
        (psycopg.OperationalError("could not extend: No space left on device"), DatabaseFull),
        (psycopg.errors.DivisionByZero("division by zero"), DatabaseProblem),
        (psycopg.OperationalError("FATAL: sorry, too many clients already"), TooManyConnections),
        (psycopg.OperationalError("FATAL: the database system is starting up"), ServerNotReady),
        (psycopg.OperationalError("FATAL: password authentication failed"), AccessDenied),
        (Foreign("killed", sqlstate="57P01"), ConnectionLost),
        (Foreign("conflict", pgcode="40001"), TransactionConflict),
    ],
)
def test_each_error_has_its_class(error: Exception, expected: type[TrunklineError]) -> None:
    found = from_driver(error)
    assert type(found) is expected
    assert "\n" not in str(found) or isinstance(error, Foreign)


def test_an_attempt_to_connect_that_failed_is_no_lost_connection() -> None:
    error = psycopg.OperationalError('connection to "x" failed: refused\n\tIs the server running?')
    found = unreachable(error)
    assert type(found) is DatabaseUnreachable
    assert str(found) == 'Cannot connect: connection to "x" failed: refused'


def test_the_message_of_asyncpg_stands_alone() -> None:
    found = from_driver(
        Foreign("unknown task", message="unknown task", sqlstate="TL001", detail='{"task": "x"}')
    )
    assert found.message == "unknown task"
    assert found.code == "unknown_task"

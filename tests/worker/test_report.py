"""What every way to end an attempt becomes."""

import asyncio
from datetime import timedelta
from typing import Any

import psycopg
import pytest
import sqlalchemy.exc

from tests.worker.scene import a_job
from trunkline import Cancel, Discard, Retry, Snooze
from trunkline.client.signature import Schema
from trunkline.errors import (
    AccessDenied,
    ConnectionLost,
    DatabaseFull,
    DatabaseProblem,
    DatabaseReadOnly,
    DatabaseUnreachable,
    LimitExhausted,
    PayloadMismatch,
    ResultNotStorable,
    ServerNotReady,
    StaleAttempt,
    TooManyConnections,
    TransactionConflict,
    WrongResult,
)
from trunkline.worker.report import End, of_error, of_stop, of_value
from trunkline.worker.roster import Stop


def work() -> Any:
    """A handler whose result may be anything."""


UNTYPED = Schema("work", work)


def caused(outer: BaseException, cause: BaseException) -> BaseException:
    outer.__cause__ = cause
    return outer


def sqlalchemy_error(driver: BaseException) -> BaseException:
    return sqlalchemy.exc.OperationalError("update t", {}, driver)


def chain(length: int) -> BaseException:
    error: BaseException = psycopg.errors.DeadlockDetected()
    for _ in range(length):
        error = caused(RuntimeError("deeper"), error)
    return error


def own_cause() -> BaseException:
    error = RuntimeError("me")
    error.__cause__ = error
    return error


class Asyncpg(Exception):
    sqlstate = "40P01"


class Psycopg2(Exception):
    pgcode = "40001"


class Silent(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


class OddOrig(Exception):
    orig = "not an exception"


CONFLICTS = [
    psycopg.errors.DeadlockDetected(),
    psycopg.errors.SerializationFailure(),
    sqlalchemy_error(psycopg.errors.DeadlockDetected()),
    sqlalchemy_error(psycopg.errors.SerializationFailure()),
    caused(RuntimeError("in the repository"), sqlalchemy_error(psycopg.errors.DeadlockDetected())),
    caused(TransactionConflict("deadlock"), psycopg.errors.DeadlockDetected()),
    Asyncpg(),
    Psycopg2(),
    chain(9),
]

FAILURES = [
    ValueError("bad"),
    psycopg.errors.UniqueViolation(),
    sqlalchemy_error(psycopg.errors.UniqueViolation()),
    KeyboardInterrupt(),
    SystemExit(1),
    asyncio.CancelledError(),
    BaseException("odd"),
    ExceptionGroup("several", [ValueError("bad")]),
    Silent(),
    OddOrig(),
    own_cause(),
    chain(30),
]


@pytest.mark.parametrize("error", CONFLICTS, ids=range(len(CONFLICTS)))
def test_a_job_that_lost_a_deadlock_is_handed_back_and_not_blamed(error: BaseException) -> None:
    report = of_error(a_job(), error)
    assert report is not None
    assert (report.end, report.reason) == (End.RELEASE, "deadlock or serialization failure")


LOSSES = [
    ConnectionLost("gone"),
    DatabaseFull("full"),
    DatabaseReadOnly("a standby by now"),
    DatabaseUnreachable("nobody there"),
    ServerNotReady("starting"),
    TooManyConnections("none left"),
    caused(DatabaseProblem("out of memory"), psycopg.errors.OutOfMemory()),
    caused(RuntimeError("in the repository"), ConnectionLost("gone")),
    ExceptionGroup("several", [ConnectionLost("gone"), DatabaseFull("full")]),
]

# Errors of a connection that is not ours, and of ours that no waiting helps.
KEPT = [
    psycopg.OperationalError("server closed the connection unexpectedly"),
    psycopg.errors.AdminShutdown(),
    psycopg.errors.DiskFull(),
    AccessDenied("wrong password"),
    DatabaseProblem("canceling statement due to statement timeout (57014)"),
    ExceptionGroup("several", [ConnectionLost("gone"), ValueError("bad")]),
]


@pytest.mark.parametrize("error", LOSSES, ids=range(len(LOSSES)))
def test_a_job_that_lost_our_database_is_handed_back_and_not_blamed(error: BaseException) -> None:
    report = of_error(a_job(), error)
    assert report is not None
    assert (report.end, report.reason) == (End.RELEASE, "the database was lost")


@pytest.mark.parametrize("error", KEPT, ids=range(len(KEPT)))
def test_a_job_that_lost_another_database_has_failed(error: BaseException) -> None:
    report = of_error(a_job(), error)
    assert report is not None
    assert report.end is End.FAIL


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
def test_anything_else_that_is_raised_is_a_failure_to_be_retried(error: BaseException) -> None:
    report = of_error(a_job(), error)
    assert report is not None
    assert (report.end, report.retryable, report.delay) == (End.FAIL, True, None)
    assert report.error is not None
    assert report.error["type"] == type(error).__qualname__
    assert report.error["message"]


@pytest.mark.parametrize(
    "error",
    [
        Discard("no use"),
        PayloadMismatch("not ours"),
        ResultNotStorable("a socket"),
        WrongResult("not a number", value='"one"'),
    ],
)
def test_what_no_retry_can_help_is_dead_at_once(error: Exception) -> None:
    report = of_error(a_job(), error)
    assert report is not None
    assert (report.end, report.retryable) == (End.FAIL, False)
    assert report.error is not None
    assert report.error["message"] == str(error)
    assert report.error.get("code") == getattr(error, "code", None)


def test_retry_carries_its_delay_and_its_reason() -> None:
    report = of_error(a_job(), Retry(after="90s", reason="the printer is warming up"))
    assert report is not None
    assert (report.end, report.delay, report.retryable) == (End.FAIL, 90.0, True)
    assert report.error == {"type": "Retry", "message": "the printer is warming up"}


def test_snooze_and_cancel_are_no_failures() -> None:
    snoozed = of_error(a_job(), Snooze("5m", "closed"))
    cancelled = of_error(a_job(), Cancel("not wanted"))
    assert snoozed is not None
    assert cancelled is not None
    assert (snoozed.end, snoozed.delay, snoozed.error) == (End.SNOOZE, 300.0, None)
    assert (cancelled.end, cancelled.reason, cancelled.error) == (End.CANCEL, "not wanted", None)


def test_a_stale_attempt_has_nothing_to_report() -> None:
    """RC-32, CP-40: the worker stops and discards."""
    assert of_error(a_job(), StaleAttempt("lost")) is None
    assert of_stop(a_job(), Stop.LOST) is None


@pytest.mark.parametrize(
    ("stop", "end", "retryable"),
    [
        (Stop.CANCELLED, End.CANCEL, True),
        (Stop.SHUTDOWN, End.RELEASE, True),
        (Stop.HARD_LIMIT, End.FAIL, True),
    ],
)
def test_each_interruption_has_its_end(stop: Stop, end: End, retryable: bool) -> None:
    report = of_stop(a_job(), stop)
    assert report is not None
    assert (report.end, report.retryable) == (end, retryable)


def test_the_hard_limit_is_named_with_its_code() -> None:
    job = a_job()
    report = of_stop(
        job._replace(hard_deadline=job.claimed_at + timedelta(minutes=7)), Stop.HARD_LIMIT
    )
    assert report is not None
    assert report.error is not None
    assert report.error["code"] == "hard_limit_exceeded"
    assert "0:07:00" in report.error["message"]


@pytest.mark.parametrize(
    ("value", "stored"),
    [(None, None), (3, "3"), ("é", '"é"'), ({"a": [1, None]}, '{"a":[1,null]}'), (False, "false")],
)
def test_a_returned_value_is_stored_as_json(value: Any, stored: str | None) -> None:
    report = of_value(a_job(), value, UNTYPED)
    assert (report.end, report.result) == (End.COMPLETE, stored)


@pytest.mark.parametrize("value", [object(), {1j: 2}, "a\0b", "\ud800"], ids=range(4))
def test_a_value_that_is_no_json_is_refused_with_a_hint(value: object) -> None:
    with pytest.raises(ResultNotStorable, match="work") as caught:
        of_value(a_job(), value, UNTYPED)
    assert caught.value.hint


@pytest.mark.parametrize(
    "outcome", [Snooze(1), Cancel(), Retry(), Discard("?")], ids=lambda one: type(one).__name__
)
def test_a_returned_outcome_is_the_same_as_a_raised_one(outcome: Exception) -> None:
    with pytest.raises(type(outcome)) as caught:
        of_value(a_job(), outcome, UNTYPED)
    assert caught.value is outcome


def test_a_traceback_is_the_handlers_own_and_bounded() -> None:
    def deep(left: int) -> None:
        if not left:
            raise ValueError("x" * 10_000)
        deep(left - 1)

    with pytest.raises(ValueError, match="x") as caught:
        deep(200)
    report = of_error(a_job(), caught.value)
    assert report is not None
    assert report.error is not None
    assert len(report.error["traceback"]) <= 4000
    assert report.error["type"] == "ValueError"


def test_a_traceback_has_its_innermost_lines() -> None:
    def ping(left: int) -> None:
        if not left:
            raise ValueError("at the bottom")
        pong(left - 1)

    def pong(left: int) -> None:
        # Taken in turns: equal frames in a row would be one line.
        ping(left)

    with pytest.raises(ValueError, match="at the bottom") as caught:
        ping(50)
    report = of_error(a_job(), caught.value)
    assert report is not None
    assert report.error is not None
    assert 10 < report.error["traceback"].count("File ") < 30
    assert report.error["traceback"].endswith("ValueError: at the bottom\n")


@pytest.mark.parametrize("error", [Retry(), Discard("?"), PayloadMismatch("?")])
def test_errors_that_explain_themselves_have_no_traceback(error: Exception) -> None:
    report = of_error(a_job(), error)
    assert report is not None
    assert report.error is not None
    assert "traceback" not in report.error


@pytest.mark.parametrize(
    ("reason", "free_in", "delay"),
    [
        ("concurrency", None, 5.0),
        ("concurrency", 3600.0, 5.0),
        ("tokens", None, None),
        ("tokens", 3600.0, 3600.0),
        ("tokens", 0.0, 0.1),
        ("quota", 60.0, 60.0),
        ("quota", 30 * 86400.0, 900.0),
    ],
)
def test_an_attempt_without_room_comes_back_when_there_may_be_some(
    reason: str, free_in: float | None, delay: float | None
) -> None:
    """Never at once, for slots soon, and for a quota that may be raised within 15 minutes."""
    report = of_error(a_job(), LimitExhausted("no room", reason=reason, free_in=free_in))
    assert report is not None
    assert (report.end, report.delay, report.reason) == (End.SNOOZE, delay, "no room")


def test_a_cause_behind_a_cancellation_is_not_to_blame() -> None:
    """What was cancelled because of a deadlock elsewhere did not lose one itself."""
    cancelled = asyncio.CancelledError()
    cancelled.__cause__ = psycopg.errors.DeadlockDetected()
    error = ValueError("of its own")
    error.__cause__ = cancelled
    report = of_error(a_job(), error)
    assert report is not None
    assert report.end is End.FAIL

"""How an attempt ended, as the completer records it, and how this follows from an exception."""

from __future__ import annotations

import asyncio
import traceback
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import Any, Final

from trunkline.client.signature import Schema
from trunkline.db.loss import database_lost
from trunkline.errors import (
    AttemptCancelled,
    ChildJobFailed,
    CostOverLimit,
    EventTimeout,
    HardLimitExceeded,
    InvalidArtifact,
    InvalidCost,
    JobsTooDeep,
    LimitExhausted,
    LimitKeyMissing,
    PayloadMismatch,
    RateLimited,
    ResultNotStorable,
    StaleAttempt,
    StepChanged,
    StepConflict,
    StepMismatch,
    StepTooLarge,
    StorageQuotaExceeded,
    TooManySteps,
    TrunklineError,
    UnknownLimit,
    WrongResult,
    http_error_of,
)
from trunkline.model import Cancel, ClaimedJob, Discard, Retry, Snooze, Suspended
from trunkline.worker.roster import Late, Stop

__all__ = ["End", "Report", "of_error", "of_stop", "of_value", "own_traceback"]

# Deadlock and serialization failure: PostgreSQL rolled the transaction back; the handler is fine.
_CONFLICTS: Final = frozenset({"40001", "40P01"})
_TRACEBACK_LINES: Final = 30
_LONGEST_TRACEBACK: Final = 4000
_DEEPEST_CAUSE: Final = 10
# How many seconds a job is deferred if all slots of a limit were taken.
_BUSY_SLOTS: Final = 5.0
# A spent quota may reset in weeks, but an operator may raise it at any time: try this often.
_LONGEST_QUOTA: Final = 900.0
_SHORTEST_WAIT: Final = 0.1


class End(Enum):
    """The call of the engine that records the end of an attempt."""

    COMPLETE = "complete"
    FAIL = "fail"
    SNOOZE = "snooze"
    # Put back until a time, an event or other jobs; the waits are already stored.
    SUSPEND = "suspend"
    CANCEL = "cancel"
    RELEASE = "release"
    # Left to a worker with other code, if there is one: the payload lacks a field or has an unknown
    # one, or a result does not match its annotation.
    HAND_OVER = "hand_over"
    # Released before it started, which does not count as an attempt.
    HAND_BACK = "hand_back"


@dataclass(slots=True)
class Report:
    """The end of one attempt. `result` is JSON text."""

    job: ClaimedJob
    end: End
    result: str | None = None
    error: dict[str, Any] | None = None
    retryable: bool = True
    delay: float | None = None
    reason: str | None = None


def of_value(job: ClaimedJob, value: Any, schema: Schema) -> Report:
    """Return the report for a returned value; raise WrongResult if it does not fit the handler."""
    if isinstance(value, (Snooze, Cancel, Retry, Discard)):
        raise value
    return Report(job, End.COMPLETE, result=schema.encode_result(value))


def of_error(  # noqa: C901, PLR0911 - a table
    job: ClaimedJob, error: BaseException
) -> Report | None:
    """Return the report for an exception of a handler, or None if another attempt owns the job."""
    match error:
        case StaleAttempt():
            return None
        case Suspended() | BaseExceptionGroup() if _waits(error):
            return Report(job, End.SUSPEND)
        case Late():
            return Report(job, End.HAND_BACK, reason="did not start in time for its limits")
        case Snooze():
            return Report(job, End.SNOOZE, delay=error.delay, reason=error.reason)
        case RateLimited():
            # A 429 is no failure. Without Retry-After, the engine decides how long to defer.
            return Report(job, End.SNOOZE, delay=error.retry_after, reason=str(error))
        case LimitExhausted():
            return Report(job, End.SNOOZE, delay=_until_free(error), reason=str(error))
        case Cancel() | AttemptCancelled():
            # Without a reason, the engine uses the reason of the cancel request.
            return Report(job, End.CANCEL, reason=getattr(error, "reason", None))
        case Retry():
            return Report(job, End.FAIL, error=_described(error), delay=error.after)
        case (
            PayloadMismatch(field=str())
            | PayloadMismatch(result=str())
            | StepMismatch(result=str())
        ):
            return Report(job, End.HAND_OVER, error=_described(error), retryable=False)
        case (
            # A retry after WrongResult would pay for the same work again.
            (Discard() | PayloadMismatch() | ResultNotStorable() | WrongResult())
            # The next attempt would find the same recorded steps and the same event.
            | (ChildJobFailed() | EventTimeout() | StepChanged() | StepConflict() | StepMismatch())
            | (JobsTooDeep() | StepTooLarge() | TooManySteps())
            # There will never be room: another attempt would only repeat the calls before this one.
            | (CostOverLimit() | InvalidCost() | LimitKeyMissing() | UnknownLimit())
            # The same name would be refused again; a spent quota is freed by people.
            | (InvalidArtifact() | StorageQuotaExceeded())
        ):
            return Report(job, End.FAIL, error=_described(error), retryable=False)
        case _ if reason := _handed_back(error):
            return Report(job, End.RELEASE, reason=reason)
        case _:
            return Report(job, End.FAIL, error=_described(error))


def _waits(error: BaseException) -> bool:
    """Whether the handler waits; a task group wraps what its branches raise."""
    return not isinstance(error, BaseExceptionGroup) or error.split(Suspended)[1] is None


def _until_free(error: LimitExhausted) -> float | None:
    if error.reason == "concurrency":
        # A slot is free when another call ends. Most calls are short.
        return _BUSY_SLOTS
    if error.free_in is None:
        return None
    wait = max(error.free_in, _SHORTEST_WAIT)
    return min(wait, _LONGEST_QUOTA) if error.reason == "quota" else wait


def of_stop(job: ClaimedJob, stop: Stop) -> Report | None:
    """Return the report for an interruption, or None if another attempt owns the job."""
    match stop:
        case Stop.LOST:
            return None
        case Stop.CANCELLED:
            # The engine knows the reason of the cancel request.
            return Report(job, End.CANCEL)
        case Stop.SHUTDOWN:
            return Report(job, End.RELEASE, reason="the worker shut down")
        case Stop.HARD_LIMIT:
            limit = job.hard_deadline - job.claimed_at
            return of_error(job, HardLimitExceeded(f"The attempt ran longer than {limit}"))


def _described(error: BaseException) -> dict[str, Any]:
    kind = type(error).__qualname__
    description: dict[str, Any] = {"type": kind, "message": _text_of(error) or kind}
    if isinstance(error, TrunklineError):
        description["code"] = error.code
        if isinstance(error, WrongResult):
            description["value"] = error.value
        if isinstance(error, PayloadMismatch) and error.field is not None:
            description["field"] = error.field
        if isinstance(error, (PayloadMismatch, StepMismatch)) and error.result is not None:
            description["result"] = error.result
    elif (http_error := http_error_of(error)) is not None:
        description["code"] = http_error.code
    elif not isinstance(error, (Retry, Discard)):
        lines = traceback.format_exception(*own_traceback(error))
        description["traceback"] = "".join(lines[-_TRACEBACK_LINES:])[-_LONGEST_TRACEBACK:]
    return description


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as failure:  # noqa: BLE001 - it is the handler's own class
        return f"no message: str() raised {type(failure).__qualname__}"


def own_traceback(
    error: BaseException,
) -> tuple[type[BaseException], BaseException, TracebackType | None]:
    """Return an error with its traceback from the handler on, without frames of the worker."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__package__") == __package__:
        trace = trace.tb_next
    return type(error), error, trace


def _handed_back(error: BaseException) -> str | None:
    """Return why the attempt is handed back, at growing delays, and not counted as a failure."""
    if _is_conflict(error):
        return "deadlock or serialization failure"
    return "the database was lost" if database_lost(error) else None


def _is_conflict(error: BaseException | None) -> bool:
    """Whether this is a conflict, or wraps one as `orig` (SQLAlchemy) or as the cause."""
    for _ in range(_DEEPEST_CAUSE):
        if error is None or isinstance(error, asyncio.CancelledError):
            return False
        if getattr(error, "sqlstate", None) in _CONFLICTS or (
            getattr(error, "pgcode", None) in _CONFLICTS
        ):
            return True
        wrapped = getattr(error, "orig", None)
        error = wrapped if isinstance(wrapped, BaseException) else error.__cause__
    return False

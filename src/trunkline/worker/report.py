"""What became of an attempt, as the completer records it, and how it follows from an error."""

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
    CostOverLimit,
    HardLimitExceeded,
    InvalidCost,
    LimitExhausted,
    LimitKeyMissing,
    PayloadMismatch,
    RateLimited,
    ResultNotStorable,
    StaleAttempt,
    TrunklineError,
    UnknownLimit,
    WrongResult,
    http_error_of,
)
from trunkline.model import Cancel, ClaimedJob, Discard, Retry, Snooze
from trunkline.worker.roster import Late, Stop

__all__ = ["End", "Report", "of_error", "of_stop", "of_value", "own_traceback"]

# Deadlock and serialization failure: PostgreSQL undid the transaction, nobody is to blame.
_CONFLICTS: Final = frozenset({"40001", "40P01"})
_TRACEBACK_LINES: Final = 30
_LONGEST_TRACEBACK: Final = 4000
_DEEPEST_CAUSE: Final = 10
# After how many seconds an attempt comes back that found no room.
_BUSY_SLOTS: Final = 5.0
# A quota may be free in weeks, or be raised any time: so often it is looked at.
_LONGEST_QUOTA: Final = 900.0
_SHORTEST_WAIT: Final = 0.1


class End(Enum):
    """The call of the engine that records it."""

    COMPLETE = "complete"
    FAIL = "fail"
    SNOOZE = "snooze"
    CANCEL = "cancel"
    RELEASE = "release"
    # For a worker with other code, if there is one: the payload lacks a field or has one too many.
    HAND_OVER = "hand_over"
    # Released before it started, which counts for nothing.
    HAND_BACK = "hand_back"


@dataclass(slots=True)
class Report:
    """One attempt's end. `result` is JSON text."""

    job: ClaimedJob
    end: End
    result: str | None = None
    error: dict[str, Any] | None = None
    retryable: bool = True
    delay: float | None = None
    reason: str | None = None


def of_value(job: ClaimedJob, value: Any, schema: Schema) -> Report:
    """What a returned value means; raises WrongResult where it is not what the handler declares."""
    if isinstance(value, (Snooze, Cancel, Retry, Discard)):
        raise value
    return Report(job, End.COMPLETE, result=schema.encode_result(value))


def of_error(  # noqa: C901, PLR0911 - a table
    job: ClaimedJob, error: BaseException
) -> Report | None:
    """What an exception of a handler means; None where another attempt owns the job."""
    match error:
        case StaleAttempt():
            return None
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
        case PayloadMismatch(field=str()):
            return Report(job, End.HAND_OVER, error=_described(error), retryable=False)
        case (
            # A retry after WrongResult would pay for the same work again.
            (Discard() | PayloadMismatch() | ResultNotStorable() | WrongResult())
            # No room will ever come for it: another attempt would repeat the calls before it.
            | (CostOverLimit() | InvalidCost() | LimitKeyMissing() | UnknownLimit())
        ):
            return Report(job, End.FAIL, error=_described(error), retryable=False)
        case _ if reason := _handed_back(error):
            return Report(job, End.RELEASE, reason=reason)
        case _:
            return Report(job, End.FAIL, error=_described(error))


def _until_free(error: LimitExhausted) -> float | None:
    if error.reason == "concurrency":
        # Nobody knows when a call of somebody else ends; most are short.
        return _BUSY_SLOTS
    if error.free_in is None:
        return None
    wait = max(error.free_in, _SHORTEST_WAIT)
    return min(wait, _LONGEST_QUOTA) if error.reason == "quota" else wait


def of_stop(job: ClaimedJob, stop: Stop) -> Report | None:
    """What an interruption means."""
    match stop:
        case Stop.LOST:
            return None
        case Stop.CANCELLED:
            # The engine knows the reason of whoever asked.
            return Report(job, End.CANCEL)
        case Stop.SHUTDOWN:
            return Report(job, End.RELEASE, reason="the worker shut down")
        case Stop.HARD_LIMIT:
            limit = job.hard_deadline - job.claimed_at
            return of_error(job, HardLimitExceeded(f"The attempt ran longer than {limit}"))


def _described(error: BaseException) -> dict[str, Any]:
    kind = type(error).__qualname__
    described: dict[str, Any] = {"type": kind, "message": _said(error) or kind}
    if isinstance(error, TrunklineError):
        described["code"] = error.code
        if isinstance(error, WrongResult):
            described["value"] = error.value
        if isinstance(error, PayloadMismatch) and error.field is not None:
            described["field"] = error.field
    elif (known := http_error_of(error)) is not None:
        described["code"] = known.code
    elif not isinstance(error, (Retry, Discard)):
        lines = traceback.format_exception(*own_traceback(error))
        described["traceback"] = "".join(lines[-_TRACEBACK_LINES:])[-_LONGEST_TRACEBACK:]
    return described


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as failure:  # noqa: BLE001 - it is the handler's own class
        return f"its text could not be made: {type(failure).__qualname__}"


def own_traceback(
    error: BaseException,
) -> tuple[type[BaseException], BaseException, TracebackType | None]:
    """An error with its traceback from the handler on, without the frames of the worker."""
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
    """Whoever wraps the driver's error keeps it as `orig` (SQLAlchemy) or as the cause."""
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

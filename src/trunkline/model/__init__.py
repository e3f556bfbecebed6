"""Values that every layer uses. This package does no I/O and imports only errors."""

from trunkline.model.duration import Duration, seconds
from trunkline.model.job import (
    GONE,
    ChangedJob,
    ClaimedJob,
    Enqueued,
    EnqueuedBatch,
    Explanation,
    Job,
    JobState,
    Verdict,
)
from trunkline.model.outcome import Cancel, Discard, Outcome, Retry, Snooze
from trunkline.model.policy import Backoff, Breaker, Schedule, TaskPolicy
from trunkline.model.request import REQUEST_FIELDS, as_request

__all__ = [
    "GONE",
    "REQUEST_FIELDS",
    "Backoff",
    "Breaker",
    "Cancel",
    "ChangedJob",
    "ClaimedJob",
    "Discard",
    "Duration",
    "Enqueued",
    "EnqueuedBatch",
    "Explanation",
    "Job",
    "JobState",
    "Outcome",
    "Retry",
    "Schedule",
    "Snooze",
    "TaskPolicy",
    "Verdict",
    "as_request",
    "seconds",
]

"""Values that every layer speaks of. No input or output, and nothing of ours but errors."""

from trunkline.model.bulk import BulkAction, BulkChange, BulkPreview, BulkProgress
from trunkline.model.dead_letters import DeadLetterGroup, PacedReplay
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
from trunkline.model.job_filter import FoundJobs, JobFilter, StateCount
from trunkline.model.operator_log import LogEntry
from trunkline.model.outcome import Cancel, Discard, Outcome, Retry, Snooze
from trunkline.model.policy import Backoff, Breaker, Schedule, TaskPolicy
from trunkline.model.request import REQUEST_FIELDS, as_request

__all__ = [
    "GONE",
    "REQUEST_FIELDS",
    "Backoff",
    "Breaker",
    "BulkAction",
    "BulkChange",
    "BulkPreview",
    "BulkProgress",
    "Cancel",
    "ChangedJob",
    "ClaimedJob",
    "DeadLetterGroup",
    "Discard",
    "Duration",
    "Enqueued",
    "EnqueuedBatch",
    "Explanation",
    "FoundJobs",
    "Job",
    "JobFilter",
    "JobState",
    "LogEntry",
    "Outcome",
    "PacedReplay",
    "Retry",
    "Schedule",
    "Snooze",
    "StateCount",
    "TaskPolicy",
    "Verdict",
    "as_request",
    "seconds",
]

"""Values that every layer uses. This package does no I/O and imports only errors."""

from trunkline.model.activity import ActivityLine, Event, RecentJob, Recently
from trunkline.model.bulk import BulkAction, BulkChange, BulkPreview, BulkProgress
from trunkline.model.dead_letters import DeadLetter, DeadLetterGroup, PacedReplay
from trunkline.model.duration import Duration, seconds
from trunkline.model.engine import (
    DutyRun,
    DutyStatus,
    HealthCheck,
    QueueStatus,
    ScheduleChange,
    ScheduleStatus,
    SettingStatus,
    TaskStatus,
    WorkerStatus,
)
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
from trunkline.model.limits import (
    BreakerStatus,
    BucketStatus,
    JobUsage,
    LimitStatus,
    QuotaStatus,
    UsageBy,
    UsageSum,
)
from trunkline.model.operator_log import LogEntry
from trunkline.model.outcome import Cancel, Discard, Outcome, Retry, Snooze
from trunkline.model.policy import Backoff, Breaker, Schedule, TaskPolicy
from trunkline.model.request import REQUEST_FIELDS, as_request

__all__ = [
    "GONE",
    "REQUEST_FIELDS",
    "ActivityLine",
    "Backoff",
    "Breaker",
    "BreakerStatus",
    "BucketStatus",
    "BulkAction",
    "BulkChange",
    "BulkPreview",
    "BulkProgress",
    "Cancel",
    "ChangedJob",
    "ClaimedJob",
    "DeadLetter",
    "DeadLetterGroup",
    "Discard",
    "Duration",
    "DutyRun",
    "DutyStatus",
    "Enqueued",
    "EnqueuedBatch",
    "Event",
    "Explanation",
    "FoundJobs",
    "HealthCheck",
    "Job",
    "JobFilter",
    "JobState",
    "JobUsage",
    "LimitStatus",
    "LogEntry",
    "Outcome",
    "PacedReplay",
    "QueueStatus",
    "QuotaStatus",
    "RecentJob",
    "Recently",
    "Retry",
    "Schedule",
    "ScheduleChange",
    "ScheduleStatus",
    "SettingStatus",
    "Snooze",
    "StateCount",
    "TaskPolicy",
    "TaskStatus",
    "UsageBy",
    "UsageSum",
    "Verdict",
    "WorkerStatus",
    "as_request",
    "seconds",
]

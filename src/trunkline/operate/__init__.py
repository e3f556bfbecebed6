"""What an operator can ask and do: typed verbs over the functions and views of the engine."""

from trunkline.model import (
    BulkAction,
    BulkPreview,
    BulkProgress,
    DeadLetterGroup,
    FoundJobs,
    JobFilter,
    LogEntry,
    PacedReplay,
    StateCount,
)
from trunkline.operate._async.operator import AsyncOperator
from trunkline.operate._sync.operator import SyncOperator

__all__ = [
    "AsyncOperator",
    "BulkAction",
    "BulkPreview",
    "BulkProgress",
    "DeadLetterGroup",
    "FoundJobs",
    "JobFilter",
    "LogEntry",
    "PacedReplay",
    "StateCount",
    "SyncOperator",
]

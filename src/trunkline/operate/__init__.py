"""What an operator can ask and do: typed verbs over the functions and views of the engine."""

from trunkline.model import FoundJobs, JobFilter, StateCount
from trunkline.operate._async.operator import AsyncOperator
from trunkline.operate._sync.operator import SyncOperator

__all__ = ["AsyncOperator", "FoundJobs", "JobFilter", "StateCount", "SyncOperator"]

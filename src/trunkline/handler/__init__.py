"""The tools of a running handler: its context, grants within limits, and calls to providers."""

from trunkline.handler.context import Context, JobContext, SyncContext, SyncTransaction, Transaction
from trunkline.handler.grants import Grant, GrantRequest, SyncGrant, SyncGrantRequest
from trunkline.handler.results import Results

__all__ = [
    "Context",
    "Grant",
    "GrantRequest",
    "JobContext",
    "Results",
    "SyncContext",
    "SyncGrant",
    "SyncGrantRequest",
    "SyncTransaction",
    "Transaction",
]

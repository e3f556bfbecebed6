"""What a running handler uses: its context, grants within limits, and calls to providers."""

from trunkline.handler.context import Context, JobContext, SyncContext, SyncTransaction, Transaction
from trunkline.handler.grants import Grant, GrantRequest, SyncGrant, SyncGrantRequest

__all__ = [
    "Context",
    "Grant",
    "GrantRequest",
    "JobContext",
    "SyncContext",
    "SyncGrant",
    "SyncGrantRequest",
    "SyncTransaction",
    "Transaction",
]

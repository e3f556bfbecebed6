"""The contexts of handlers: `Context` for `async def`, `SyncContext` for `def`."""

from trunkline.handler._async.context import AsyncBackend, Context
from trunkline.handler._sync.context import SyncBackend, SyncContext
from trunkline.handler.job_context import JobContext
from trunkline.handler.transactions import SyncTransaction, Transaction

__all__ = [
    "AsyncBackend",
    "Context",
    "JobContext",
    "SyncBackend",
    "SyncContext",
    "SyncTransaction",
    "Transaction",
]

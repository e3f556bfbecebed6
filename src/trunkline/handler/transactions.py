"""Transactions in which a handler's writes and the completion of its job commit together."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any

from trunkline.handler.mistakes import AsyncOnly, SyncOnly

__all__ = ["SyncTransaction", "Transaction"]


class Transaction(AsyncOnly, AbstractAsyncContextManager[Any]):
    """Returns a psycopg AsyncConnection; leaving the block completes the job in the same commit.
    An error in the block rolls the writes back and fails the attempt. If the error is the loss of
    the database, the attempt is handed back and not counted as a failure. If another attempt owns
    the job by then, nothing is committed and StaleAttempt is raised. If the worker has received a
    cancel request, nothing is committed and Cancel is raised, which ends the job as cancelled.
    """

    _call = "ctx.transaction()"


class SyncTransaction(SyncOnly, AbstractContextManager[Any]):
    """The same for `with` in a plain handler; returns a psycopg Connection."""

    _call = "ctx.transaction()"

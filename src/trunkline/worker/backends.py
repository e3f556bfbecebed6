"""What stands behind a handler's context in the worker's own process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from types import TracebackType
from typing import Any, Final, TypeVar

from trunkline.client import Task
from trunkline.db.call import Call
from trunkline.db.calls import work
from trunkline.db.loss import mark_within
from trunkline.db.pool import AsyncPool, SyncPool
from trunkline.db.runner import run, run_async
from trunkline.errors import AttemptCancelled, StaleAttempt
from trunkline.handler import Context, JobContext, SyncContext, SyncTransaction, Transaction
from trunkline.handler.grants import AsyncConnections, AsyncGrants, SyncConnections, SyncGrants
from trunkline.model import Cancel, ClaimedJob
from trunkline.worker.roster import Held, Stop

__all__ = [
    "LoopBackend",
    "Services",
    "ThreadBackend",
    "cancel_raised",
    "complete_call",
    "judge_progress",
]


T = TypeVar("T")

# A thread that waits looks this often whether it is to stop.
_LOOK: Final = 0.1


@dataclass(slots=True)
class Services:
    """What handlers may reach of their worker."""

    dsn: str
    worker: str
    pool: AsyncPool
    sync_pool: SyncPool
    forget: Callable[[Held], None]
    # Connections to providers, kept for the next call of whichever job.
    connections: AsyncConnections = field(default_factory=AsyncConnections)
    sync_connections: SyncConnections = field(default_factory=SyncConnections)

    async def close(self) -> None:
        """Close the connections to providers."""
        await self.connections.close()
        self.sync_connections.close()


def judge_progress(job: ClaimedJob, verdict: str) -> None:
    """Stop the handler where the engine's answer says so."""
    if verdict == "cancel":
        # Without a reason: the engine knows that of whoever asked.
        raise Cancel
    if verdict == "lost":
        raise StaleAttempt(
            "the attempt is no longer yours",
            hint="Stop the work and discard its result.",
            detail={"job": str(job.job_id), "attempt": job.attempt},
        )


@contextmanager
def cancel_raised() -> Iterator[None]:
    """Raise Cancel if the engine refuses to complete an attempt because of a cancel request.

    Context.progress raises the same, so that a handler can clean up in one place.
    """
    try:
        yield
    except AttemptCancelled as error:
        raise Cancel from error


def complete_call(worker: str, job: ClaimedJob, task: Task[..., Any], ctx: JobContext) -> Any:
    """The completion that commits with a handler's own writes, or with nothing."""
    # Without ctx.result there is no result, whatever the handler returns later.
    result = None if ctx.result is None else task.schema.encode_result(ctx.result)
    return work.complete(worker, [job.job_id], [job.attempt], [result], strict=True)


class _Backend:
    def __init__(self, services: Services, held: Held, task: Task[..., Any]) -> None:
        self._services = services
        self._held = held
        self._task = task

    def cancelled(self) -> bool:
        return self._held.stop is not None

    @property
    def worker(self) -> str:
        """See Context.worker."""
        return self._services.worker

    def _progress_call(self, percent: int | None, message: str | None, phase: str | None) -> Any:
        job = self._held.job
        return work.progress(
            self._services.worker,
            job.job_id,
            job.attempt,
            percent=percent,
            message=message,
            phase=phase,
        )


class LoopBackend(_Backend):
    """For `async def` handlers."""

    async def progress(self, percent: int | None, message: str | None, phase: str | None) -> None:
        """See Context.progress."""
        call = self._progress_call(percent, message, phase)
        judge_progress(self._held.job, await self._services.pool.run(call))

    @cached_property
    def grants(self) -> AsyncGrants:
        """The limits and providers of the attempt."""
        return AsyncGrants(self, self._held.job, self._task.limit, self._services.connections)

    async def run(self, call: Call[T]) -> T:
        """Call the engine."""
        return await self._services.pool.run(call)

    async def pause(self, seconds: float) -> None:
        """Wait; whoever stops the attempt interrupts it."""
        await asyncio.sleep(seconds)

    def transaction(self, ctx: Context) -> Transaction:
        """See Context.transaction."""
        return _LoopTransaction(self._services, self._held, self._task, ctx)


class ThreadBackend(_Backend):
    """For handlers in threads."""

    def progress(self, percent: int | None, message: str | None, phase: str | None) -> None:
        """See SyncContext.progress."""
        call = self._progress_call(percent, message, phase)
        judge_progress(self._held.job, self._services.sync_pool.run(call))

    @cached_property
    def grants(self) -> SyncGrants:
        """The limits and providers of the attempt."""
        return SyncGrants(self, self._held.job, self._task.limit, self._services.sync_connections)

    def run(self, call: Call[T]) -> T:
        """Call the engine."""
        return self._services.sync_pool.run(call)

    def pause(self, seconds: float) -> None:
        """Wait, or until the attempt is to stop: nothing interrupts a thread."""
        end = time.monotonic() + seconds
        while True:
            if self._held.stop is not None:
                judge_progress(self._held.job, "lost" if self._held.stop is Stop.LOST else "cancel")
            left = end - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, _LOOK))

    def transaction(self, ctx: SyncContext) -> SyncTransaction:
        """See SyncContext.transaction."""
        return _ThreadTransaction(self._services, self._held, self._task, ctx)


class _LoopTransaction(Transaction):
    def __init__(self, services: Services, held: Held, task: Task[..., Any], ctx: Context) -> None:
        self._services = services
        self._held = held
        self._task = task
        self._ctx = ctx

    async def __aenter__(self) -> Any:
        async with AsyncExitStack() as stack:
            borrowed = self._services.pool.connection()
            self._connection = await stack.enter_async_context(borrowed)
            self._transaction = self._connection.transaction()
            await self._transaction.__aenter__()
            # Until here an error gives the connection back.
            self._borrowed = stack.pop_all()
        return self._connection

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                await self._complete()
            else:
                mark_within(self._connection, error)
                await self._transaction.__aexit__(kind, error, trace)
        finally:
            await self._borrowed.aclose()

    async def _complete(self) -> None:
        try:
            call = complete_call(self._services.worker, self._held.job, self._task, self._ctx)
            with cancel_raised():
                await run_async(self._connection, call)
        except BaseException as error:
            await self._transaction.__aexit__(type(error), error, error.__traceback__)
            raise
        # From here on a lost connection leaves open whether it was committed; a repeated report
        # would be answered `lost` or `already`, so asking again is safe.
        commit = asyncio.ensure_future(self._transaction.__aexit__(None, None, None))
        try:
            await asyncio.shield(commit)
        except asyncio.CancelledError:
            # The connection is the commit's until it is done, and what is done is done.
            await asyncio.wait({commit})
            self._held.ended_in_transaction = commit.exception() is None
            raise
        self._held.ended_in_transaction = True


class _ThreadTransaction(SyncTransaction):
    def __init__(
        self, services: Services, held: Held, task: Task[..., Any], ctx: SyncContext
    ) -> None:
        self._services = services
        self._held = held
        self._task = task
        self._ctx = ctx

    def __enter__(self) -> Any:
        with ExitStack() as stack:
            self._connection = stack.enter_context(self._services.sync_pool.connection())
            transaction: AbstractContextManager[Any] = self._connection.transaction()
            stack.enter_context(transaction)
            # Until here an error gives the connection back.
            self._stack = stack.pop_all()
        return self._connection

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._stack:
            if error is not None:
                mark_within(self._connection, error)
                # Passing it to the stack undoes the transaction.
                raise error.with_traceback(trace)
            call = complete_call(self._services.worker, self._held.job, self._task, self._ctx)
            with cancel_raised():
                run(self._connection, call)
        self._held.ended_in_transaction = True

"""The implementation of a handler's context in the worker's own process."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from types import TracebackType
from typing import Any, Final, TypeVar

from trunkline.artifacts import (
    AsyncLargeResults,
    AsyncResultLimits,
    AsyncStore,
    AsyncUploads,
    SyncLargeResults,
    SyncResultLimits,
    SyncStore,
    SyncUploads,
)
from trunkline.artifacts.results import may_be_large, reference_to
from trunkline.client import Task
from trunkline.db.call import Call, json_text
from trunkline.db.calls import work
from trunkline.db.calls.steps import record_steps
from trunkline.db.loss import mark_within
from trunkline.db.pool import AsyncPool, SyncPool
from trunkline.db.runner import run, run_async
from trunkline.errors import AttemptCancelled, StaleAttempt
from trunkline.handler import Context, JobContext, SyncContext, SyncTransaction, Transaction
from trunkline.handler.grants import AsyncConnections, AsyncGrants, SyncConnections, SyncGrants
from trunkline.handler.steps import AsyncSteps, SyncSteps
from trunkline.model import Cancel, ClaimedJob, NewStep, UploadedFile, WorkflowPlace
from trunkline.worker.emitter import Emitter, Output
from trunkline.worker.recorder import Recorder
from trunkline.worker.roster import HeldJob, Stop

__all__ = [
    "LoopBackend",
    "Services",
    "ThreadBackend",
    "cancel_raised",
    "complete_call",
    "judge_progress",
    "result_in_transaction",
]


T = TypeVar("T")

# How often a waiting thread checks whether it should stop.
_CHECK_EVERY: Final = 0.1


@dataclass(slots=True)
class Services:
    """The parts of the worker that handlers can use."""

    dsn: str
    worker: str
    pool: AsyncPool
    sync_pool: SyncPool
    forget: Callable[[HeldJob], None]
    recorder: Recorder
    emitter: Emitter
    # Connections to providers, kept open and shared by all jobs.
    connections: AsyncConnections = field(default_factory=AsyncConnections)
    sync_connections: SyncConnections = field(default_factory=SyncConnections)
    # Where files of handlers go; None if the application names no store.
    store: AsyncStore | None = None
    # What the database takes; see AsyncLargeResults.
    limits: AsyncResultLimits = field(default_factory=AsyncResultLimits)
    sync_limits: SyncResultLimits = field(default_factory=SyncResultLimits)

    def sync_store(self) -> SyncStore | None:
        """Return the store for threads."""
        store = self.store
        return None if store is None else SyncStore(lambda: store.store)

    async def close(self) -> None:
        """Close the connections to providers, and the threads of the store."""
        if self.store is not None:
            await self.store.close()
        await self.connections.close()
        self.sync_connections.close()


def judge_progress(job: ClaimedJob, verdict: str) -> None:
    """Raise if the engine's verdict is that the handler must stop."""
    if verdict == "cancel":
        # No reason is passed: the engine records the reason of the cancel request.
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


def result_in_transaction(task: Task[..., Any], ctx: JobContext) -> str | None:
    """Return the result of a job that its handler's transaction completes."""
    # Only ctx.result counts: the handler has not returned its value yet.
    return None if ctx.result is None else task.schema.encode_result(ctx.result)


def complete_call(
    worker: str, job: ClaimedJob, result: str | None, uploaded: UploadedFile | None
) -> Any:
    """Return the call that completes the job in the handler's transaction."""
    if uploaded is not None:
        result = json_text(reference_to(uploaded.id))
    return work.complete(worker, [job.job_id], [job.attempt], [result], strict=True)


class _Backend:
    def __init__(self, services: Services, held: HeldJob, task: Task[..., Any]) -> None:
        self._services = services
        self._held = held
        self._task = task
        # Connections of open transactions, by the task or thread that opened them.
        self.in_transaction: dict[Any, Any] = {}

    def cancelled(self) -> bool:
        return self._held.stop is not None

    @property
    def worker(self) -> str:
        """See Context.worker."""
        return self._services.worker

    @property
    def has_waited(self) -> bool:
        """Whether a wait has ended the attempt. Does not create the steps, which most jobs lack."""
        steps: AsyncSteps | SyncSteps | None = self.__dict__.get("steps")
        return steps is not None and steps.suspended

    @property
    def parts(self) -> tuple[Services, HeldJob, Task[..., Any]]:
        """The services, the job and the task."""
        return self._services, self._held, self._task

    @property
    def main_task(self) -> asyncio.Task[None] | None:
        """The task in which the handler runs."""
        return self._held.runner

    @cached_property
    def _output(self) -> Output:
        """What the attempt emits."""
        return self._services.emitter.output(self._held.job)

    def _emit(self, text: str) -> None:
        if self._output.lost or self._held.stop is Stop.LOST:
            judge_progress(self._held.job, "lost")
        self._output.add(text)

    def _judge_step(self, verdict: str) -> None:
        if verdict != "ok":
            judge_progress(self._held.job, verdict)

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

    async def emit(self, text: str) -> None:
        """See Context.emit."""
        self._emit(text)

    async def flush(self) -> None:
        """Wait until what the attempt has emitted is stored."""
        await self._services.emitter.flush(self._held.job)

    @cached_property
    def grants(self) -> AsyncGrants:
        """Limits and providers that the attempt can use."""
        return AsyncGrants(self, self._held.job, self._task.limit, self._services.connections)

    @cached_property
    def steps(self) -> AsyncSteps:
        """The durable steps of the attempt."""
        return AsyncSteps(self, self._held.job)

    async def record(self, step: NewStep) -> None:
        """Record a step, in the transaction that the handler's task has open, if any."""
        connection = self.in_transaction.get(asyncio.current_task())
        if connection is None:
            self._judge_step(await self._services.recorder.record(step))
        else:
            call = record_steps(self._services.worker, [step])
            self._judge_step((await run_async(connection, call))[0])

    @cached_property
    def uploads(self) -> AsyncUploads:
        """Uploads of files to the store."""
        return AsyncUploads(self, self._held.job, self._services.store)

    @cached_property
    def large(self) -> AsyncLargeResults:
        """Results that are too large for the database."""
        return AsyncLargeResults(self.uploads, self._held.job, self._services.limits)

    async def run(self, call: Call[T]) -> T:
        """Call the engine."""
        return await self._services.pool.run(call)

    async def workflow(self) -> WorkflowPlace:
        """See Context.workflow."""
        return await self.run(work.job_workflow(self.worker, self._held.job))

    async def pause(self, seconds: float) -> None:
        """Sleep. Stopping the attempt interrupts this."""
        await asyncio.sleep(seconds)

    def transaction(self, ctx: Context) -> Transaction:
        """See Context.transaction."""
        return _LoopTransaction(self, ctx)


class ThreadBackend(_Backend):
    """For handlers in threads."""

    def progress(self, percent: int | None, message: str | None, phase: str | None) -> None:
        """See SyncContext.progress."""
        call = self._progress_call(percent, message, phase)
        judge_progress(self._held.job, self._services.sync_pool.run(call))

    def emit(self, text: str) -> None:
        """See SyncContext.emit. A thread cannot be interrupted, so it stops here."""
        self.pause(0)
        self._emit(text)

    def flush(self) -> None:
        """Wait until what the attempt has emitted is stored."""
        if self._services.emitter.outputs:
            self._services.emitter.flush_soon(self._held.job).result()

    @cached_property
    def grants(self) -> SyncGrants:
        """Limits and providers that the attempt can use."""
        return SyncGrants(self, self._held.job, self._task.limit, self._services.sync_connections)

    @cached_property
    def steps(self) -> SyncSteps:
        """The durable steps of the attempt."""
        return SyncSteps(self, self._held.job)

    def record(self, step: NewStep) -> None:
        """Record a step, in the transaction that this thread has open, if any."""
        connection = self.in_transaction.get(threading.get_ident())
        if connection is not None:
            call = record_steps(self._services.worker, [step])
            self._judge_step(run(connection, call)[0])
            return
        recording = self._services.recorder.record_soon(step)
        while True:
            try:
                verdict = recording.result(_CHECK_EVERY)
            except TimeoutError:
                # The server may be away for long; a stopped attempt must not wait for it.
                self.pause(0)
            else:
                self._judge_step(verdict)
                return

    @cached_property
    def uploads(self) -> SyncUploads:
        """Uploads of files to the store."""
        return SyncUploads(self, self._held.job, self._services.sync_store())

    @cached_property
    def large(self) -> SyncLargeResults:
        """Results that are too large for the database."""
        return SyncLargeResults(self.uploads, self._held.job, self._services.sync_limits)

    def run(self, call: Call[T]) -> T:
        """Call the engine."""
        return self._services.sync_pool.run(call)

    def workflow(self) -> WorkflowPlace:
        """See SyncContext.workflow."""
        return self.run(work.job_workflow(self.worker, self._held.job))

    def pause(self, seconds: float) -> None:
        """Sleep, and raise if the attempt is stopped meanwhile: a thread cannot be interrupted."""
        end = time.monotonic() + seconds
        while True:
            if self._held.stop is not None:
                judge_progress(self._held.job, "lost" if self._held.stop is Stop.LOST else "cancel")
            remaining = end - time.monotonic()
            if remaining <= 0:
                return
            time.sleep(min(remaining, _CHECK_EVERY))

    def transaction(self, ctx: SyncContext) -> SyncTransaction:
        """See SyncContext.transaction."""
        return _ThreadTransaction(self, ctx)


class _LoopTransaction(Transaction):
    def __init__(self, backend: LoopBackend, ctx: Context) -> None:
        self._services, self._held, self._task = backend.parts
        self._open = backend.in_transaction
        self._backend = backend
        self._ctx = ctx

    async def __aenter__(self) -> Any:
        async with AsyncExitStack() as stack:
            borrowed = self._services.pool.connection()
            self._connection = await stack.enter_async_context(borrowed)
            self._transaction = self._connection.transaction()
            await self._transaction.__aenter__()
            # From here on, __aexit__ returns the connection to the pool.
            self._borrowed = stack.pop_all()
        self._key = asyncio.current_task()
        self._open[self._key] = self._connection
        return self._connection

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.pop(self._key, None)
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
            result = result_in_transaction(self._task, self._ctx)
            uploaded = None
            if may_be_large(result):
                uploaded = await self._backend.large.upload_result(result)
            await self._backend.flush()
            call = complete_call(self._services.worker, self._held.job, result, uploaded)
            with cancel_raised():
                await run_async(self._connection, call)
        except BaseException as error:
            await self._transaction.__aexit__(type(error), error, error.__traceback__)
            raise
        # If the connection breaks from here on, the commit may or may not have happened. The engine
        # answers a repeated report with `lost` or `already`, so it is safe to repeat it.
        commit = asyncio.ensure_future(self._transaction.__aexit__(None, None, None))
        try:
            await asyncio.shield(commit)
        except asyncio.CancelledError:
            # The commit is using the connection, so wait for it and record its outcome.
            await asyncio.wait({commit})
            self._held.ended_in_transaction = commit.exception() is None
            raise
        self._held.ended_in_transaction = True


class _ThreadTransaction(SyncTransaction):
    def __init__(self, backend: ThreadBackend, ctx: SyncContext) -> None:
        self._services, self._held, self._task = backend.parts
        self._open = backend.in_transaction
        self._backend = backend
        self._ctx = ctx

    def __enter__(self) -> Any:
        with ExitStack() as stack:
            self._connection = stack.enter_context(self._services.sync_pool.connection())
            transaction: AbstractContextManager[Any] = self._connection.transaction()
            stack.enter_context(transaction)
            # From here on, __aexit__ returns the connection to the pool.
            self._stack = stack.pop_all()
        self._open[threading.get_ident()] = self._connection
        return self._connection

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.pop(threading.get_ident(), None)
        with self._stack:
            if error is not None:
                mark_within(self._connection, error)
                # The stack rolls the transaction back. It swallows psycopg.Rollback.
                raise error.with_traceback(trace)
            result = result_in_transaction(self._task, self._ctx)
            uploaded = None
            if may_be_large(result):
                uploaded = self._backend.large.upload_result(result)
            self._backend.flush()
            call = complete_call(self._services.worker, self._held.job, result, uploaded)
            with cancel_raised():
                run(self._connection, call)
        if error is None:
            self._held.ended_in_transaction = True

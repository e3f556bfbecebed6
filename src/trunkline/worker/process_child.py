"""The process in which handlers with process=True run. Only process_pool starts it."""

from __future__ import annotations

import importlib
import os
import pickle
import signal
import socket
import sys
import threading
import time
from contextlib import ExitStack
from functools import cached_property
from queue import SimpleQueue
from types import FrameType, TracebackType
from typing import Any, TypeVar

from trunkline.artifacts import (
    Store,
    SyncLargeResults,
    SyncResultLimits,
    SyncStore,
    SyncUploads,
)
from trunkline.artifacts.results import may_be_large
from trunkline.client import Task
from trunkline.db.call import Call
from trunkline.db.calls import work
from trunkline.db.calls.steps import record_steps
from trunkline.db.connect import connect
from trunkline.db.dsn import reported
from trunkline.db.loss import mark_within
from trunkline.db.pool import SyncPool
from trunkline.db.runner import run
from trunkline.errors import HandlerProcessDied, InvalidTask
from trunkline.handler import SyncContext, SyncTransaction
from trunkline.handler.grants import SyncConnections, SyncGrants
from trunkline.handler.steps import SyncSteps
from trunkline.model import Cancel, NewStep, Outcome, WorkflowPlace
from trunkline.telemetry import enter_job, set_up_logging
from trunkline.worker.backends import (
    cancel_raised,
    complete_call,
    judge_progress,
    result_in_transaction,
)
from trunkline.worker.dependencies import Dependencies
from trunkline.worker.emitter import emitted_text
from trunkline.worker.frames import Emit, Ended, Hello, Progress, Run, Verdict, receive, send
from trunkline.worker.report import End, Report, of_error, of_value
from trunkline.worker.roster import check_start
from trunkline.worker.stop_signals import stop_signals

__all__ = ["main"]

T = TypeVar("T")

# Whether the worker asked this process to end.
_stopped = threading.Event()


class _Stopped(Cancel):
    """Raised in a handler when its process is asked to end."""


class _Parent:
    """The worker at the other end. A thread reads, so that its death is noticed at once."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._messages: SimpleQueue[Any] = SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        try:
            while (message := receive(self._channel)) is not None:
                self._messages.put(message)
        finally:
            # The worker is gone, so this handler could no longer report its end. If the worker left
            # data unread, the connection was reset.
            os._exit(0)

    def next(self) -> Any:
        return self._messages.get()

    def send(self, message: Any) -> None:
        send(self._channel, message)


class _Shared:
    """Connections that the handlers of this process share, one after the other."""

    def __init__(self, dsn: str, store: bytes | None) -> None:
        self.dsn = dsn
        # Opened at its first use; see process_pool.
        self.store = None if store is None else SyncStore(lambda: _unpacked(store))
        # Connects at its first use: most handlers never call the engine.
        self.pool = SyncPool(dsn, size=2, name="trunkline handler")
        self.connections = SyncConnections()
        self.limits = SyncResultLimits()


class _ChildBackend:
    def __init__(self, parent: _Parent, shared: _Shared, order: Run) -> None:
        self._parent = parent
        self.shared = shared
        self.order = order
        # Set before the handler can use its context.
        self.task: Task[..., Any]
        self.in_transaction = False
        # The connection of the open transaction.
        self.connection: Any = None
        # Nothing to wait for: a process has no tasks.
        self.main_task = None
        # The bytes that the attempt has emitted.
        self._emitted = 0

    @property
    def worker(self) -> str:
        return self.order.worker

    @cached_property
    def grants(self) -> SyncGrants:
        return SyncGrants(self, self.order.job, self.task.limit, self.shared.connections)

    @cached_property
    def steps(self) -> SyncSteps:
        return SyncSteps(self, self.order.job)

    @property
    def has_waited(self) -> bool:
        steps: SyncSteps | None = self.__dict__.get("steps")
        return steps is not None and steps.suspended

    def record(self, step: NewStep) -> None:
        call = record_steps(self.worker, [step])
        (verdict,) = self.run(call) if self.connection is None else run(self.connection, call)
        if verdict != "ok":
            judge_progress(self.order.job, verdict)

    @cached_property
    def uploads(self) -> SyncUploads:
        return SyncUploads(self, self.order.job, self.shared.store)

    @cached_property
    def large(self) -> SyncLargeResults:
        return SyncLargeResults(self.uploads, self.order.job, self.shared.limits)

    def run(self, call: Call[T]) -> T:
        return self.shared.pool.run(call)

    def workflow(self) -> WorkflowPlace:
        return self.run(work.job_workflow(self.order.worker, self.order.job))

    def pause(self, seconds: float) -> None:
        # A request to stop interrupts the sleep; see _stop.
        time.sleep(seconds)

    def progress(self, percent: int | None, message: str | None, phase: str | None) -> None:
        self._parent.send(Progress(percent, message, phase))
        answer = self._parent.next()
        if not isinstance(answer, Verdict):
            raise HandlerProcessDied(f"The worker answered {answer!r}")
        judge_progress(self.order.job, answer.verdict)

    def emit(self, text: str) -> None:
        text, self._emitted = emitted_text(text, self._emitted, self.order.job)
        if text:
            self._parent.send(Emit(text))

    def flush(self) -> None:
        """Wait until what the attempt has emitted is stored."""
        if self._emitted:
            self._parent.send(Emit("", flush=True))
            self._parent.next()

    def cancelled(self) -> bool:
        # A request to stop arrives as an exception; see _stop.
        return False

    def transaction(self, ctx: SyncContext) -> SyncTransaction:
        return _ChildTransaction(self, ctx)


class _ChildTransaction(SyncTransaction):
    def __init__(self, backend: _ChildBackend, ctx: SyncContext) -> None:
        self._backend = backend
        self._ctx = ctx

    def __enter__(self) -> Any:
        with ExitStack() as stack:
            self._connection = stack.enter_context(
                connect(self._backend.shared.dsn, name="trunkline handler")
            )
            # The handler's statements have no deadline, as on connections from a pool.
            self._connection.patience = None
            stack.enter_context(self._connection.transaction())
            self._stack = stack.pop_all()
        self._backend.connection = self._connection
        return self._connection

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        order = self._backend.order
        self._backend.connection = None
        with self._stack:
            if error is not None:
                mark_within(self._connection, error)
                raise error.with_traceback(trace)
            result = result_in_transaction(self._backend.task, self._ctx)
            uploaded = None
            if may_be_large(result):
                uploaded = self._backend.large.upload_result(result)
            self._backend.flush()
            call = complete_call(order.worker, order.job, result, uploaded)
            with cancel_raised():
                run(self._connection, call)
        if error is None:
            self._backend.in_transaction = True


def main(descriptor: int) -> None:
    """Run the jobs that the worker sends until it closes the connection."""
    parent = _Parent(socket.socket(fileno=descriptor))
    hello = parent.next()
    assert isinstance(hello, Hello)  # noqa: S101 - the worker always sends it first
    sys.path[:] = hello.path
    if hello.log is not None:
        set_up_logging(*hello.log)
    for number in stop_signals():
        if number != signal.SIGINT:
            signal.signal(number, _stop)
    reported(hello.dsn)
    shared = _Shared(hello.dsn, hello.store)
    while not _stopped.is_set():
        order = parent.next()
        backend = _ChildBackend(parent, shared, order)
        parent.send(_ended(_run(order, backend), backend))


def _run(order: Run, backend: _ChildBackend) -> Report | None:
    job = order.job
    enter_job(job)
    try:
        task = _find(order.module, order.name)
        needs = Dependencies(order.worker, job, task.schema)
        arguments = needs.thread_arguments(backend.run, order.inputs, backend.shared.store)
        # Checked here, because starting a process and importing a module take time.
        check_start(order.start_before)
        if task.schema.takes_context:
            backend.task = task
            ctx = SyncContext(job, backend)
            value = task.handler(ctx, **arguments)
            ctx.check_suspended()
        else:
            value = task.handler(**arguments)
        if backend.in_transaction:
            return Report(job, End.COMPLETE)
        return of_value(job, value, task.schema)
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - any exception ends the attempt
        if _stopped.is_set() and (isinstance(error, _Stopped) or not isinstance(error, Outcome)):
            # The process was stopped, not the job. A worker that asked for it ignores this report.
            return Report(job, End.RELEASE, reason="its process was asked to stop")
        return of_error(job, error)


def _unpacked(store: bytes) -> Store:
    opened: Store = pickle.loads(store)  # noqa: S301 - from the worker, through a private socket
    return opened


def _find(module: str, name: str) -> Task[..., Any]:
    task: Any = importlib.import_module(module)
    for part in name.split("."):
        task = getattr(task, part)
    if not isinstance(task, Task):
        raise InvalidTask(
            f"{module}.{name} is not a task",
            hint="@app.task must be the outermost decorator of a handler with process=True.",
        )
    return task


def _ended(report: Report | None, backend: _ChildBackend) -> Ended:
    leaving = _stopped.is_set()
    if backend.in_transaction:
        return Ended(End.COMPLETE.value, in_transaction=True, leaving=leaving)
    if report is None:
        return Ended(leaving=leaving)
    return Ended(
        report.end.value,
        result=report.result,
        error=report.error,
        retryable=report.retryable,
        delay=report.delay,
        reason=report.reason,
        leaving=leaving,
    )


def _stop(_number: int, _frame: FrameType | None) -> None:
    # Raise only once: a second exception would interrupt the handler while it cleans up.
    if not _stopped.is_set():
        _stopped.set()
        raise _Stopped("asked to stop")


if __name__ == "__main__":
    main(int(sys.argv[1]))

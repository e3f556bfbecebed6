"""The process in which handlers with process=True run. Started by process_pool, never by hand."""

from __future__ import annotations

import importlib
import os
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

from trunkline.client import Task
from trunkline.db.call import Call
from trunkline.db.connect import connect
from trunkline.db.dsn import reported
from trunkline.db.loss import mark_within
from trunkline.db.pool import SyncPool
from trunkline.db.runner import run
from trunkline.errors import HandlerProcessDied, InvalidTask
from trunkline.handler import SyncContext, SyncTransaction
from trunkline.handler.grants import SyncConnections, SyncGrants
from trunkline.model import Cancel, Outcome
from trunkline.telemetry import enter_job, set_up_logging
from trunkline.worker.backends import cancel_raised, complete_call, judge_progress
from trunkline.worker.frames import Ended, Hello, Progress, Run, Verdict, receive, send
from trunkline.worker.report import End, Report, of_error, of_value
from trunkline.worker.roster import check_start
from trunkline.worker.stop_signals import stop_signals

__all__ = ["main"]

T = TypeVar("T")

# Whether the worker asked this process to end.
_stopped = threading.Event()


class _Stopped(Cancel):
    """Raised in a handler whose process is told to end."""


class _Parent:
    """The worker at the other end. A thread reads, so that its death is noticed at any time."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._messages: SimpleQueue[Any] = SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        try:
            while (message := receive(self._channel)) is not None:
                self._messages.put(message)
        finally:
            # The worker is gone (reset, if it left something unread): whatever this handler does
            # can no longer be reported.
            os._exit(0)

    def next(self) -> Any:
        return self._messages.get()

    def say(self, message: Any) -> None:
        send(self._channel, message)


class _Means:
    """What handlers of this process share, one after the other."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        # Connects at its first use: most handlers ask nothing of the engine.
        self.pool = SyncPool(dsn, size=2, name="trunkline handler")
        self.connections = SyncConnections()


class _ChildBackend:
    def __init__(self, parent: _Parent, means: _Means, order: Run) -> None:
        self._parent = parent
        self.means = means
        self.order = order
        # Set before the handler can use its context.
        self.task: Task[..., Any]
        self.in_transaction = False

    @property
    def worker(self) -> str:
        return self.order.worker

    @cached_property
    def grants(self) -> SyncGrants:
        return SyncGrants(self, self.order.job, self.task.limit, self.means.connections)

    def run(self, call: Call[T]) -> T:
        return self.means.pool.run(call)

    def pause(self, seconds: float) -> None:
        # A request to stop interrupts it, see _stop.
        time.sleep(seconds)

    def progress(self, percent: int | None, message: str | None, phase: str | None) -> None:
        self._parent.say(Progress(percent, message, phase))
        answer = self._parent.next()
        if not isinstance(answer, Verdict):
            raise HandlerProcessDied(f"The worker answered {answer!r}")
        judge_progress(self.order.job, answer.verdict)

    def cancelled(self) -> bool:
        # A request to stop arrives as an exception, see _stop.
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
                connect(self._backend.means.dsn, name="trunkline handler")
            )
            # As with connections from a pool, the handler's statements have no deadline.
            self._connection.patience = None
            stack.enter_context(self._connection.transaction())
            self._stack = stack.pop_all()
        return self._connection

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        order = self._backend.order
        with self._stack:
            if error is not None:
                mark_within(self._connection, error)
                raise error.with_traceback(trace)
            call = complete_call(order.worker, order.job, self._backend.task, self._ctx)
            with cancel_raised():
                run(self._connection, call)
        self._backend.in_transaction = True


def main(descriptor: int) -> None:
    """Run what the worker sends until it goes away."""
    parent = _Parent(socket.socket(fileno=descriptor))
    hello = parent.next()
    assert isinstance(hello, Hello)  # noqa: S101 - the worker always says it first
    sys.path[:] = hello.path
    if hello.log is not None:
        set_up_logging(*hello.log)
    for number in stop_signals():
        if number != signal.SIGINT:
            signal.signal(number, _stop)
    reported(hello.dsn)
    means = _Means(hello.dsn)
    while not _stopped.is_set():
        order = parent.next()
        backend = _ChildBackend(parent, means, order)
        parent.say(_ended(_run(order, backend), backend))


def _run(order: Run, backend: _ChildBackend) -> Report | None:
    job = order.job
    enter_job(job)
    try:
        task = _find(order.module, order.name)
        arguments = task.schema.decode(job.payload)
        # Only here: to start a process and import a module takes its time.
        check_start(order.start_before)
        if task.schema.takes_context:
            backend.task = task
            value = task.handler(SyncContext(job, backend), **arguments)
        else:
            value = task.handler(**arguments)
        if backend.in_transaction:
            return Report(job, End.COMPLETE)
        return of_value(job, value, task.schema)
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its answer
        if _stopped.is_set() and (isinstance(error, _Stopped) or not isinstance(error, Outcome)):
            # Of the process, not of the job. If it was the worker that asked, it reads no more.
            return Report(job, End.RELEASE, reason="its process was asked to stop")
        return of_error(job, error)


def _find(module: str, name: str) -> Task[..., Any]:
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    if not isinstance(found, Task):
        raise InvalidTask(
            f"{module}.{name} is no task",
            hint="@app.task must be the outermost decorator of a handler with process=True.",
        )
    return found


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
    # Once: a second exception would interrupt what the handler does to clean up.
    if not _stopped.is_set():
        _stopped.set()
        raise _Stopped("asked to stop")


if __name__ == "__main__":
    main(int(sys.argv[1]))

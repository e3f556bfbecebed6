"""Runs claimed jobs one after another, with the parts of the worker but without their loops."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from trunkline.artifacts import AsyncStore
from trunkline.client import Trunkline
from trunkline.client.task import tasks_by_name
from trunkline.db.calls import read, work
from trunkline.db.calls.produce import register_tasks
from trunkline.db.pool import AsyncPool, SyncPool
from trunkline.errors import InvalidTask
from trunkline.model import ClaimedJob, Job, JobState
from trunkline.worker.backends import Services
from trunkline.worker.completer import Completer
from trunkline.worker.emitter import Emitter
from trunkline.worker.executor import Executor
from trunkline.worker.recorder import Recorder
from trunkline.worker.report import End, Report
from trunkline.worker.roster import HeldJob, Roster

__all__ = ["Attempt", "SerialWorker"]

_WORKER = "sandbox"
# The largest claim that the engine allows.
LARGEST_CLAIM = 10_000


@dataclass(frozen=True, slots=True)
class Attempt:
    """The outcome of one attempt: the job afterwards, and the exception of its handler."""

    job: Job
    end: End | None
    error: BaseException | None
    report: Report | None

    @property
    def outcome(self) -> str:
        """The field of `Drained` that counts it."""
        if self.end is None:
            return "completed" if self.job.state is JobState.COMPLETED else "lost"
        if self.job.state is JobState.DEAD:
            return "dead"
        if self.job.state is JobState.CANCELLED:
            # Also a completion after a heartbeat or progress call had returned cancel.
            return "cancelled"
        return {
            End.COMPLETE: "completed",
            End.FAIL: "failed",
            End.SNOOZE: "snoozed",
            End.SUSPEND: "suspended",
            End.CANCEL: "cancelled",
            End.RELEASE: "released",
            End.HAND_OVER: "released",
            End.HAND_BACK: "released",
        }[self.end]


class _Executor(Executor):
    """Keeps the handler's exception, because a test needs the exception itself."""

    error: BaseException | None = None

    def _log_end(self, held: HeldJob, error: BaseException, report: Report | None) -> None:
        self.error = error
        super()._log_end(held, error, report)


class SerialWorker:
    """A worker that runs one job at a time, when it is asked to."""

    def __init__(self, app: Trunkline, dsn: str) -> None:
        if not app.tasks:
            raise InvalidTask(
                "The application has no tasks",
                hint="Import the modules that declare them before the test runs jobs.",
            )
        self._policies = [policy for task in app.tasks.values() for policy in task.policies]
        self._tasks = tasks_by_name(app.tasks)
        self._stack = AsyncExitStack()
        self._pool = AsyncPool(dsn, size=4, name="trunkline sandbox")
        self._sync_pool = SyncPool(dsn, size=4, name="trunkline sandbox")
        self._roster = Roster()
        self._completer = Completer(dsn, _WORKER, self._roster)
        self._recorder = Recorder(dsn, _WORKER)
        self._emitter = Emitter(dsn, _WORKER)
        self._reports: asyncio.Queue[Report | None] = asyncio.Queue()
        self._executor = _Executor(
            self._tasks,
            Services(
                dsn,
                _WORKER,
                self._pool,
                self._sync_pool,
                self._forget,
                self._recorder,
                self._emitter,
                store=AsyncStore(app.open_store) if app.has_store else None,
            ),
            concurrency=1,
            threads=None,
            report=self._reports.put_nowait,
            on_demand=lambda: None,
        )

    async def __aenter__(self) -> Self:
        self._stack.push_async_callback(self._pool.close)
        self._stack.callback(self._sync_pool.close)
        self._stack.push_async_callback(self._completer.close)
        self._stack.push_async_callback(self._recorder.stop)
        self._stack.push_async_callback(self._emitter.stop)
        self._stack.push_async_callback(self._executor.close)
        await self._pool.run(register_tasks(self._policies))
        self._executor.start()
        self._recorder.start()
        self._emitter.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    async def claim(self, limit: int = 1) -> list[ClaimedJob]:
        """Claim ready jobs in the engine's order."""
        call = work.claim(_WORKER, None, limit, list(self._tasks), None)
        return (await self._pool.run(call)).jobs

    async def run(self, job: ClaimedJob) -> Attempt:
        """Run one claimed job and record how it ended."""
        self._executor.error = None
        self._executor.submit(self._roster.add([job]))
        report = await self._reports.get()
        if report is not None:
            self._completer.add(report)
            await self._completer.turn()
        after = await self._pool.run(read.job(job.job_id))
        assert after is not None  # noqa: S101 - nothing deletes jobs in a sandbox
        end = None if report is None else report.end
        return Attempt(after, end, self._executor.error, report)

    def _forget(self, held: HeldJob) -> None:
        """Remove a job without a report: its handler's transaction ended it, or it was lost."""
        self._roster.remove([held.job])
        self._reports.put_nowait(None)

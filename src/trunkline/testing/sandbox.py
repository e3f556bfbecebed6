"""A sandbox for tests that are plain functions, and one for asynchronous tests."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar, overload
from uuid import UUID

from trunkline.client import JobHandle, Request, SyncJobHandle, Trunkline
from trunkline.errors import SandboxMisused
from trunkline.model import Job
from trunkline.testing.base import Base, Drained, Runnable

__all__ = ["AsyncSandbox", "Drained", "Sandbox"]

R = TypeVar("R")
T = TypeVar("T")


class Sandbox(Base):
    """The database of one test: `with Sandbox(app) as sandbox:`; for plain test functions.
    Within the block, the application uses this database. Jobs run only when the test asks for it,
    in this process, one at a time, with the same claims and completions as in a worker.
    """

    def __init__(self, app: Trunkline) -> None:
        super().__init__(app)
        self._runner: asyncio.Runner | None = None

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Drop the database and connect the application to its own again."""
        runner, self._runner = self._runner, None
        if runner is not None:
            runner.run(self.app.close())
            runner.close()
        super().close()

    @overload
    def run_inline(self, job: Request[R] | JobHandle[R] | SyncJobHandle[R]) -> R: ...
    @overload
    def run_inline(self, job: Job | UUID | str) -> Any: ...
    def run_inline(self, job: Runnable) -> Any:
        """Run one job now, ahead of all others; return its result or raise its handler's error.

        A request is enqueued first. The clock is moved if the job is not due yet. Snooze, Cancel,
        Retry and Discard are raised like errors, also when the handler returned them.
        """
        if isinstance(job, Request):
            job = self.app.sync.enqueue_many([job])[0]
        return self._decoded(job, self._run(self._run_inline(_id(job))))

    def drain(
        self,
        max_jobs: int | None = None,
        *,
        until_empty: bool = True,
        with_scheduled: bool = False,
    ) -> Drained:
        """Run ready jobs, and those they enqueue, until none is left; count how they ended.
        `until_empty=False` runs only the jobs that are ready now. `with_scheduled=True` also runs
        scheduled jobs, including retries, and moves the clock from one to the next. Errors of
        handlers are recorded as in a worker, not raised.
        """
        return self._run(
            self._drain(max_jobs, until_empty=until_empty, with_scheduled=with_scheduled)
        )

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if _in_a_loop():
            work.close()
            raise SandboxMisused(
                "A Sandbox was used inside an event loop",
                hint="Use AsyncSandbox, or the fixture trunkline_async_sandbox, in async tests.",
            )
        if self._runner is None:
            self._runner = asyncio.Runner()
        return self._runner.run(work)


class AsyncSandbox(Base):
    """The same for asynchronous tests: handlers run in the event loop of the test."""

    async def __aenter__(self) -> Self:
        return self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.app.close()
        self.close()

    @overload
    async def run_inline(self, job: Request[R] | JobHandle[R] | SyncJobHandle[R]) -> R: ...
    @overload
    async def run_inline(self, job: Job | UUID | str) -> Any: ...
    async def run_inline(self, job: Runnable) -> Any:
        """See Sandbox.run_inline."""
        if isinstance(job, Request):
            job = (await self.app.enqueue_many([job]))[0]
        return self._decoded(job, await self._run_inline(_id(job)))

    async def drain(
        self,
        max_jobs: int | None = None,
        *,
        until_empty: bool = True,
        with_scheduled: bool = False,
    ) -> Drained:
        """See Sandbox.drain."""
        return await self._drain(max_jobs, until_empty=until_empty, with_scheduled=with_scheduled)


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _id(job: JobHandle[Any] | SyncJobHandle[Any] | Job | UUID | str) -> UUID:
    if isinstance(job, UUID):
        return job
    return UUID(job) if isinstance(job, str) else job.id

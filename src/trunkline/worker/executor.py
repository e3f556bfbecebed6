"""Runs handlers in a fixed number of runners.

A runner is an asyncio task that lives as long as the worker. A task for each job would cost more
than a short job itself: with runners, the prototype drained 28 to 38 % more.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

from trunkline.artifacts.results import may_be_large
from trunkline.client import Task
from trunkline.errors import TrunklineError
from trunkline.handler import Context, SyncContext
from trunkline.model import Discard, Outcome, Retry
from trunkline.telemetry.logs import enter_job
from trunkline.worker.backends import LoopBackend, Services, ThreadBackend
from trunkline.worker.dependencies import Dependencies, has_references
from trunkline.worker.process_pool import ProcessPool
from trunkline.worker.report import End, Report, of_error, of_stop, of_value, own_traceback
from trunkline.worker.results import Results
from trunkline.worker.roster import HeldJob, Stop, check_start
from trunkline.worker.threads import Threads

__all__ = ["Executor"]

# The worker claims ahead what it will start within this time at its present pace, so that no runner
# waits for the database. It does not claim long jobs ahead.
_AHEAD: Final = 0.05
_MOST_AHEAD: Final = 2000
# Limited jobs must start within a second of their claim. The worker claims no more than it can
# start within half a second, and only as many as runners are free if a job takes longer than this.
_IN_TIME: Final = 0.5
_SHORT: Final = 0.25
# Weight of the latest job in the average duration.
_NEWEST: Final = 0.05

_WITHOUT_TRACE: Final = (Retry, Discard, TrunklineError)

_log = logging.getLogger("trunkline.worker.executor")


class Executor:
    """Runs claimed jobs and reports their ends."""

    def __init__(
        self,
        tasks: Mapping[str, Task[..., Any]],
        services: Services,
        *,
        concurrency: int,
        threads: int | None,
        report: Callable[[Report], None],
        on_demand: Callable[[], None],
    ) -> None:
        self._tasks = tasks
        self._services = services
        self._report = report
        self._on_demand = on_demand
        self._concurrency = concurrency
        self._threads = Threads(threads or concurrency)
        self._processes = ProcessPool(services)
        self._results = Results(services)
        self._buffer: deque[HeldJob] = deque()
        self._idle: deque[asyncio.Future[None]] = deque()
        self._runners: list[asyncio.Task[None]] = []
        # Average duration of a job in seconds. It starts high, so that nothing is claimed ahead.
        self._average = 1.0
        # The same for limited jobs, which may take much longer than the others.
        self._limited_average = 1.0
        self._limited_running = 0
        self.last_start = time.monotonic()
        # Whether jobs are claimed and started. Running jobs continue either way.
        self.accepting = True
        self._closing = False

    def start(self) -> None:
        """Start the runners."""
        for number in range(self._concurrency - len(self._runners)):
            runner = asyncio.create_task(self._run_forever(), name=f"trunkline runner {number}")
            self._runners.append(runner)

    @property
    def buffered(self) -> int:
        """Number of claimed jobs that have not started."""
        return len(self._buffer)

    @property
    def next_unstarted(self) -> HeldJob | None:
        """The claimed job that starts next."""
        return self._buffer[0] if self._buffer else None

    @property
    def busy(self) -> int:
        """Number of runners with a job."""
        return len(self._runners) - len(self._idle)

    def demand(self) -> int:
        """How many jobs to claim now: one per free runner, and more if jobs are short."""
        if not self.accepting:
            return 0
        ahead = min(int(self._concurrency * _AHEAD / self._average), _MOST_AHEAD)
        missing = len(self._idle) + ahead - len(self._buffer)
        # Many small claims cost more than they bring, so wait until half of the buffer is empty:
        # the next claim then runs while the other half is worked off.
        return missing if missing and missing >= ahead // 2 else 0

    def limited_demand(self) -> int:
        """How many limited jobs would start in time if they were claimed now."""
        idle = len(self._idle)
        queued = len(self._buffer) * self._average / self._concurrency
        if queued > _IN_TIME or self._average > _SHORT:
            return max(idle - len(self._buffer), 0)
        if self._limited_average > _SHORT:
            # A limited job keeps its runner for long. Runners with other jobs are free again soon.
            soon_free = self._concurrency - idle - self._limited_running
            waiting = sum(held.start_before is not None for held in self._buffer)
            return max(idle + soon_free - waiting, 0)
        ahead = self._concurrency * (_IN_TIME - queued) / self._limited_average
        return max(idle - len(self._buffer), 0) + min(int(ahead), _MOST_AHEAD)

    def submit(self, held: list[HeldJob]) -> None:
        """Add claimed jobs to the buffer, in order."""
        self._buffer.extend(held)
        for _ in range(min(len(held), len(self._idle))):
            waiter = self._idle.popleft()
            if not waiter.done():
                waiter.set_result(None)

    def take_unstarted(self) -> list[HeldJob]:
        """Empty the buffer and return its jobs, which have not started."""
        unstarted = list(self._buffer)
        self._buffer.clear()
        return unstarted

    def slow_down(self) -> None:
        """Claim nothing ahead until jobs prove to be short again."""
        self._average = max(self._average, 1.0)
        self._limited_average = max(self._limited_average, 1.0)

    def stop_job(self, held: HeldJob, stop: Stop) -> None:
        """Interrupt one running job. A second reason does not replace the first."""
        if held.stop is None:
            held.stop = stop
            if stop is Stop.LOST:
                _log.warning(
                    "job %s was lost: %s; its handler is stopped",
                    held.job.job_id,
                    "the server has no such job" if held.gone else "another attempt owns it now",
                    extra={"job_id": str(held.job.job_id), "attempt": held.job.attempt},
                )
        if held.runner is not None:
            held.runner.cancel()

    async def close(self) -> None:
        """End the runners. Jobs that still run return when their leases expire."""
        self._closing = True
        for runner in self._runners:
            runner.cancel()
        if self._runners:
            await asyncio.wait(self._runners, timeout=2)
        self._threads.close()
        await self._services.close()
        await self._processes.close()

    async def _run_forever(self) -> None:
        buffer = self._buffer
        runner = asyncio.current_task()
        assert runner is not None  # noqa: S101 - it is the task this runs in
        while True:
            if not buffer or not self.accepting:
                waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._idle.append(waiter)
                self._on_demand()
                await waiter
                continue
            held = buffer.popleft()
            if self._idle and not buffer:
                # The claimer counted this job for another runner, which is still idle.
                self._on_demand()
            if held.stop is None:
                try:
                    await self._run(held, runner)
                except Exception as error:  # noqa: BLE001 - a runner that dies is never replaced
                    # The user's log handler failed, or an exception could not be described.
                    description = {"type": type(error).__qualname__, "message": repr(error)}
                    self._report(Report(held.job, End.FAIL, error=description))
            elif report := of_stop(held.job, held.stop):
                self._report(report)
            else:
                self._services.forget(held)
            if len(buffer) < 2:
                self._on_demand()

    async def _run(self, held: HeldJob, runner: asyncio.Task[None]) -> None:
        job = held.job
        held.runner = runner
        started = held.started = self.last_start = time.monotonic()
        enter_job(job)
        is_limited = held.start_before is not None
        self._limited_running += is_limited
        report: Report | None
        try:
            report = await self._call(held, self._tasks[job.task])
        except asyncio.CancelledError as error:
            if self._closing:
                # The runner itself ends. The job returns when its lease expires.
                raise
            report = of_stop(job, held.stop) if held.stop else of_error(job, error)
        except BaseException as error:  # noqa: BLE001 - any exception ends the attempt
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                _log.error("the handler of %s raised %s", job.task, type(error).__name__)
            if held.stop is not None and not isinstance(error, Outcome):
                # The handler turned its interruption into another exception.
                report = of_stop(job, held.stop)
            else:
                report = of_error(job, error)
            self._log_end(held, error, report)
        finally:
            held.runner = None
            self._limited_running -= is_limited
        self._learn(time.monotonic() - started, report, is_limited=is_limited)
        if self._services.emitter.outputs:
            await self._end_output(held)
        if report is None or held.ended_in_transaction:
            self._services.forget(held)
        else:
            self._report(report)
        if runner.cancelling() and not self._closing:
            # However often the runner was cancelled, the next job must not see it.
            await _swallow_cancellation(runner)

    def _learn(self, duration: float, report: Report | None, *, is_limited: bool) -> None:
        self._average += (duration - self._average) * _NEWEST
        if is_limited:
            self._limited_average += (duration - self._limited_average) * _NEWEST
            if report is not None and report.end is End.HAND_BACK:
                # More were claimed than could start. Claim none ahead until the average is known.
                self._limited_average = max(self._limited_average, 1.0)

    async def _end_output(self, held: HeldJob) -> None:
        emitter = self._services.emitter
        try:
            if held.stop is not Stop.LOST and not held.ended_in_transaction:
                await emitter.flush(held.job)
        except asyncio.CancelledError:
            if self._closing:
                raise
            # The job is over, whatever still interrupts it; its last output is not stored.
        finally:
            emitter.end(held.job)

    async def _call(self, held: HeldJob, task: Task[..., Any]) -> Report:
        job = held.job
        services = self._services
        needs = inputs = None
        if job.workflow_id is not None and has_references(job):
            needs = Dependencies(services.worker, job, task.schema)
            inputs = await needs.resolve(services.pool.run, services.store)
        if task.mode == "process":
            check_start(held.start_before)
            report = await self._processes.run(held, task, inputs)
            return report if held.ended_in_transaction else await self._results.fitting(report)
        if task.mode == "async":
            if needs is None or inputs is None:
                arguments = task.schema.decode(job.payload)
            else:
                arguments = needs.loop_arguments(services.pool.run, inputs, services.store)
            check_start(held.start_before)
            if task.schema.takes_context:
                ctx = Context(job, LoopBackend(self._services, held, task))
                value = await task.handler(ctx, **arguments)
                ctx.check_suspended()
            else:
                value = await task.handler(**arguments)
        else:
            if needs is None or inputs is None:
                arguments = task.schema.decode(job.payload)
            else:
                store = services.sync_store()
                arguments = needs.thread_arguments(services.sync_pool.run, inputs, store)
            value = await self._threads.run(self._in_thread, held, task, arguments)
        if held.ended_in_transaction:
            return Report(job, End.COMPLETE)
        report = of_value(job, value, task.schema)
        if report.result is None or not may_be_large(report.result):
            # To await `fitting` for each of them would take 2 % of the time of a plain job.
            return report
        return await self._results.fitting(report)

    def _in_thread(self, held: HeldJob, task: Task[..., Any], arguments: dict[str, Any]) -> Any:
        enter_job(held.job)
        # Checked here, because the job may have waited for a thread.
        check_start(held.start_before)
        if task.schema.takes_context:
            ctx = SyncContext(held.job, ThreadBackend(self._services, held, task))
            value = task.handler(ctx, **arguments)
            ctx.check_suspended()
            return value
        return task.handler(**arguments)

    def _log_end(self, held: HeldJob, error: BaseException, report: Report | None) -> None:
        if report is None:
            _log.warning("job %s was lost: another attempt owns it now", held.job.job_id)
        elif report.end is End.RELEASE and held.stop is None:
            _log.warning(
                "attempt %d of %s was handed back: %s: %s",
                held.job.attempt,
                held.job.task,
                report.reason,
                error,
            )
        elif report.end is End.FAIL and isinstance(error, Exception):
            _log.warning(
                "attempt %d of %s failed: %s: %s",
                held.job.attempt,
                held.job.task,
                type(error).__qualname__,
                error,
                # Our own errors need no traceback: it would only show this package.
                exc_info=None if isinstance(error, _WITHOUT_TRACE) else own_traceback(error),
            )


async def _swallow_cancellation(runner: asyncio.Task[Any]) -> None:
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(0)
    while runner.cancelling():
        runner.uncancel()

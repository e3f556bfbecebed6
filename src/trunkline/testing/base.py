"""The common part of both kinds of sandbox: the database of one test, and its methods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Self, TypeVar
from uuid import UUID

from trunkline.client import JobHandle, Request, SyncJobHandle, Task, Trunkline
from trunkline.client.task import tasks_by_name
from trunkline.db import disposable
from trunkline.db.call import Call
from trunkline.db.calls.admin import run_duties, run_duty, set_schedule
from trunkline.db.calls.flow import set_limit
from trunkline.db.calls.produce import register_tasks
from trunkline.db.pool import SyncPool
from trunkline.errors import DrainUnfinished, JobFailed, JobNotRunnable, SandboxMisused, UnknownTask
from trunkline.model import Cancel, Duration, Job, JobState, Snooze, Suspended, seconds
from trunkline.testing import server
from trunkline.testing.expectations import Expectation, listing
from trunkline.testing.serial_worker import LARGEST_CLAIM, Attempt, SerialWorker
from trunkline.worker.report import End

__all__ = ["Base", "Drained", "Runnable"]

T = TypeVar("T")

# No test needs so many jobs: some handler enqueues new jobs without end.
_RUNAWAY: Final = 10_000

Runnable = Request[Any] | JobHandle[Any] | SyncJobHandle[Any] | Job | UUID | str


@dataclass(frozen=True, slots=True)
class Drained:
    """How the attempts of a drain ended."""

    completed: int = 0
    # The job waits for its next attempt.
    failed: int = 0
    dead: int = 0
    snoozed: int = 0
    # The job waits for a time, an event or other jobs.
    suspended: int = 0
    cancelled: int = 0
    # Handed back, as after a deadlock.
    released: int = 0
    # Another attempt owned the job by then.
    lost: int = 0

    @property
    def total(self) -> int:
        """The number of all attempts."""
        return sum(getattr(self, name) for name in self.__dataclass_fields__)


class Base:
    """Opens and closes the database, reads jobs, moves time, and runs jobs in an event loop."""

    def __init__(self, app: Trunkline) -> None:
        self.app = app
        self._stack = ExitStack()
        self._dsn = ""

    @property
    def dsn(self) -> str:
        """The connection string of the database, for the test's own connections."""
        if not self._dsn:
            raise SandboxMisused(
                "The sandbox is not open",
                hint="Use it in `with Sandbox(app) as sandbox:`, or take the pytest fixture.",
            )
        return self._dsn

    def open(self) -> Self:
        """Create the database and connect the application to it."""
        if self._dsn:
            raise SandboxMisused("The sandbox is already open", hint="Use one for each test.")
        with ExitStack() as stack:
            running = server.running()
            dsn, superuser = stack.enter_context(
                disposable.create(running.superuser_dsn, server.INSTALLER)
            )
            stack.enter_context(self.app.connect_to(dsn))
            self._superuser = superuser
            self._pool = SyncPool(superuser, size=2, name="trunkline sandbox")
            stack.callback(self._pool.close)
            self._set_schedules()
            self._stack = stack.pop_all()
        self._dsn = dsn
        return self

    def close(self) -> None:
        """Drop the database and connect the application to its own again."""
        self._dsn = ""
        self._stack.close()

    def now(self) -> datetime:
        """Return the time by the engine's clock."""
        now: datetime = self._run_call(disposable.clock())
        return now

    def move_time(self, by: Duration) -> datetime:
        """Move the engine's clock forward for the whole database, and return the new time.

        Python's clock stays as it is: compute times for `run_at` from `now()`.
        """
        self._run_call(disposable.move_clock(seconds(by)))
        return self.now()

    def set_limit(self, limit: str, **parts: Any) -> None:
        """Create a limit that tasks name, or change parts of it: `requests_per_minute=500`."""
        self._run_call(set_limit(limit, parts))

    def run_duties(self) -> None:
        """Run the duties that are due by the engine's clock, as workers do.
        Schedules enqueue their jobs, and jobs of lost workers are reclaimed.
        """
        self._run_call(run_duties())

    def all_enqueued(self) -> list[Job]:
        """Return the jobs that have not started, with their payloads, in the order of creation."""
        return self._run_call(disposable.waiting_jobs())

    def assert_enqueued(
        self,
        task: Task[..., Any] | str,
        payload: Mapping[str, Any] | None = None,
        /,
        *,
        count: int | None = None,
        **parameters: Any,
    ) -> list[Job]:
        """Fail unless jobs of a task wait whose payloads contain this; return them.
        At least one must wait, or exactly `count`. Pass parameters that are named like those of
        this method in a dictionary.
        """
        expectation = Expectation(task, {**(payload or {}), **parameters})
        waiting = self.all_enqueued()
        matches = expectation.among(waiting)
        if count is None and matches:
            return matches
        if count is not None and len(matches) == count:
            return matches
        number = "a job" if count is None else f"{count} jobs"
        raise AssertionError(
            f"expected {number} of {expectation}, found {len(matches)}; waiting:\n"
            + listing(waiting)
        )

    def refute_enqueued(
        self,
        task: Task[..., Any] | str,
        payload: Mapping[str, Any] | None = None,
        /,
        **parameters: Any,
    ) -> None:
        """Fail if a job of a task waits whose payload contains this."""
        expectation = Expectation(task, {**(payload or {}), **parameters})
        matches = expectation.among(self.all_enqueued())
        if matches:
            raise AssertionError(
                f"expected no job of {expectation}, found {len(matches)}:\n{listing(matches)}"
            )

    def _run_call(self, call: Call[T]) -> T:
        _ = self.dsn
        return self._pool.run(call)

    def _set_schedules(self) -> None:
        """Create the schedules now, so that they see a moved clock; only `run_duties` runs them."""
        tasks = [task for task in self.app.tasks.values() if task.schedule is not None]
        if tasks:
            self._pool.run(register_tasks(policy for task in tasks for policy in task.policies))
        for task in tasks:
            schedule = task.schedule
            assert schedule is not None  # noqa: S101 - see above
            self._pool.run(
                set_schedule(
                    task.name,
                    schedule.cron,
                    task.name,
                    payload=schedule.payload,
                    time_zone=schedule.time_zone,
                    missed=schedule.missed,
                )
            )

    async def _run_inline(self, job: UUID) -> Attempt:
        async with SerialWorker(self.app, self.dsn) as worker:
            with disposable.alone(self._superuser, job):
                claimed = await worker.claim()
                if not claimed:
                    raise self._not_claimed(job)
            # After the locks are released: the handler may enqueue or change other jobs.
            return await worker.run(claimed[0])

    def _not_claimed(self, job: UUID) -> Exception:
        details = self.app.sync.jobs.get(job)
        if details.task not in tasks_by_name(self.app.tasks):
            return UnknownTask(
                "the application has no such task",
                hint="Import the module that declares it.",
                detail={"task": details.task},
            )
        explanations = self.app.sync.jobs.explain(job)
        reasons = ", ".join(explanation.reason for explanation in explanations)
        return JobNotRunnable(
            f"Job {job} of {details.task} cannot be claimed: {reasons or details.state}",
            hint="Its queue is paused, or claims are disabled in the settings.",
        )

    async def _drain(
        self, max_jobs: int | None, *, until_empty: bool, with_scheduled: bool
    ) -> Drained:
        limit = _RUNAWAY if max_jobs is None else max_jobs
        counts: Counter[str] = Counter()
        async with SerialWorker(self.app, self.dsn) as worker:
            if not until_empty:
                for job in await worker.claim(min(limit, LARGEST_CLAIM)) if limit > 0 else []:
                    counts[(await worker.run(job)).outcome] += 1
                return Drained(**counts)
            claimed_again = False
            while counts.total() < limit:
                claimed = await worker.claim()
                if claimed:
                    claimed_again = False
                    counts[(await worker.run(claimed[0])).outcome] += 1
                    continue
                if self._expand_maps():
                    continue
                wait = self._run_call(disposable.next_due()) if with_scheduled else None
                # A scheduled job may have become due since the claim. If the next claim does not
                # return it either, it cannot be claimed.
                if wait is None or (wait < 0 and claimed_again):
                    return Drained(**counts)
                claimed_again = wait < 0
                if wait >= 0:
                    self._run_call(disposable.move_clock(wait + 0.001))
        if max_jobs is None:
            raise DrainUnfinished(f"More than {_RUNAWAY} jobs ran and others still wait")
        return Drained(**counts)

    def _expand_maps(self) -> bool:
        """Insert jobs of maps, as workers do; True if that changed any map."""
        maps = self._run_call(disposable.open_maps())
        if not maps:
            return False
        self._run_call(run_duty("expand_workflows"))
        # A map over an empty list has no jobs, but the steps after it do. One that a full queue
        # refuses stays as it is.
        return self._run_call(disposable.open_maps()) != maps

    def _decoded(self, job: Runnable, attempt: Attempt) -> Any:
        """Return the typed result of an attempt, or raise the error of its handler."""
        if attempt.error is not None:
            raise attempt.error
        after = attempt.job
        if after.state is JobState.COMPLETED:
            handler = tasks_by_name(self.app.tasks)[after.task]
            decode = getattr(job, "decode_result", handler.schema.result)
            return decode(after.result)
        report = attempt.report
        # A handler in a separate process reports how it ended, without the exception.
        if report is not None and report.end is End.SNOOZE:
            raise Snooze(report.delay or 0, report.reason)
        if report is not None and report.end is End.CANCEL:
            raise Cancel(report.reason)
        if report is not None and report.end is End.SUSPEND:
            raise Suspended
        error = after.last_error if report is None else report.error or after.last_error
        raise JobFailed(after.id, after.reason, error=error, errors=after.errors)

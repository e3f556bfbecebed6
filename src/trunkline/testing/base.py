"""What both kinds of sandbox are: a database of one test, and what a test asks of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Self, TypeVar
from uuid import UUID

from trunkline.client import JobHandle, Request, SyncJobHandle, Task, Trunkline
from trunkline.db import disposable
from trunkline.db.call import Call
from trunkline.db.calls.admin import run_duties, set_schedule
from trunkline.db.calls.flow import set_limit
from trunkline.db.calls.produce import register_tasks
from trunkline.db.pool import SyncPool
from trunkline.errors import DrainUnfinished, JobFailed, JobNotRunnable, SandboxMisused, UnknownTask
from trunkline.model import Cancel, Duration, Job, JobState, Snooze, seconds
from trunkline.testing import server
from trunkline.testing.expecting import Wanted, listing
from trunkline.testing.hand import LARGEST_CLAIM, Attempt, Hand
from trunkline.worker.report import End

__all__ = ["Base", "Drained", "Runnable"]

T = TypeVar("T")

# No test means so many: something makes jobs without an end.
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
    cancelled: int = 0
    # Handed back, as after a deadlock.
    released: int = 0
    # Another attempt owned the job by then.
    lost: int = 0

    @property
    def total(self) -> int:
        """All attempts."""
        return sum(getattr(self, name) for name in self.__dataclass_fields__)


class Base:
    """Opens and closes the database; looks, moves time, and runs jobs in an event loop."""

    def __init__(self, app: Trunkline) -> None:
        self.app = app
        self._stack = ExitStack()
        self._dsn = ""

    @property
    def dsn(self) -> str:
        """The connection string of the database, for connections of the test's own."""
        if not self._dsn:
            raise SandboxMisused(
                "The sandbox is not open",
                hint="Use it in `with Sandbox(app) as sandbox:`, or take the pytest fixture.",
            )
        return self._dsn

    def open(self) -> Self:
        """Make the database and lead the application to it."""
        if self._dsn:
            raise SandboxMisused("The sandbox is open already", hint="Use one for each test.")
        with ExitStack() as stack:
            running = server.running()
            dsn, superuser = stack.enter_context(
                disposable.create(running.superuser_dsn, server.INSTALLER)
            )
            stack.enter_context(self.app.connect_to(dsn))
            self._superuser = superuser
            self._desk = SyncPool(superuser, size=2, name="trunkline sandbox")
            stack.callback(self._desk.close)
            self._set_schedules()
            self._stack = stack.pop_all()
        self._dsn = dsn
        return self

    def close(self) -> None:
        """Drop the database and lead the application back to its own."""
        self._dsn = ""
        self._stack.close()

    def now(self) -> datetime:
        """The time by the engine's clock."""
        found: datetime = self._ask(disposable.clock())
        return found

    def move_time(self, by: Duration) -> datetime:
        """Move the engine's clock forward for all of the database; returns the new time.

        Python's clock stays as it is: compute times for `run_at` from `now()`.
        """
        self._ask(disposable.move_clock(seconds(by)))
        return self.now()

    def set_limit(self, limit: str, **parts: Any) -> None:
        """Make a limit that tasks name, or change parts of it: `requests_per_minute=500`."""
        self._ask(set_limit(limit, parts))

    def run_duties(self) -> None:
        """Do what workers do beside running jobs, as far as it is due by the engine's clock.

        Schedules enqueue their jobs, and jobs of lost workers come back.
        """
        self._ask(run_duties())

    def all_enqueued(self) -> list[Job]:
        """Jobs that have not begun, with their payloads, in the order in which they were made."""
        return self._ask(disposable.waiting_jobs())

    def assert_enqueued(
        self,
        task: Task[..., Any] | str,
        payload: Mapping[str, Any] | None = None,
        /,
        *,
        count: int | None = None,
        **parameters: Any,
    ) -> list[Job]:
        """Fail unless jobs of a task wait whose payloads contain this; returns them.

        One at least, or exactly `count`. A dictionary takes parameters named like this method's.
        """
        wanted = Wanted(task, {**(payload or {}), **parameters})
        there = self.all_enqueued()
        found = wanted.among(there)
        if count is None and found:
            return found
        if count is not None and len(found) == count:
            return found
        number = "a job" if count is None else f"{count} jobs"
        raise AssertionError(
            f"expected {number} of {wanted}, found {len(found)}; waiting:\n{listing(there)}"
        )

    def refute_enqueued(
        self,
        task: Task[..., Any] | str,
        payload: Mapping[str, Any] | None = None,
        /,
        **parameters: Any,
    ) -> None:
        """Fail if a job of a task waits whose payload contains this."""
        wanted = Wanted(task, {**(payload or {}), **parameters})
        found = wanted.among(self.all_enqueued())
        if found:
            raise AssertionError(
                f"expected no job of {wanted}, found {len(found)}:\n{listing(found)}"
            )

    def _ask(self, call: Call[T]) -> T:
        _ = self.dsn
        return self._desk.run(call)

    def _set_schedules(self) -> None:
        """Now, so that a moved clock meets them; nothing runs them but `run_duties`."""
        tasks = [task for task in self.app.tasks.values() if task.schedule is not None]
        if tasks:
            self._desk.run(register_tasks(policy for task in tasks for policy in task.policies))
        for task in tasks:
            when = task.schedule
            assert when is not None  # noqa: S101 - see above
            self._desk.run(
                set_schedule(
                    task.name,
                    when.cron,
                    task.name,
                    payload=when.payload,
                    time_zone=when.time_zone,
                    missed=when.missed,
                )
            )

    async def _run_inline(self, job: UUID) -> Attempt:
        async with Hand(self.app, self.dsn) as hand:
            with disposable.alone(self._superuser, job):
                claimed = await hand.claim()
                if not claimed:
                    raise self._not_claimed(job)
            # Outside: the locks would hold up what the handler does with other jobs.
            return await hand.run(claimed[0])

    def _not_claimed(self, job: UUID) -> Exception:
        found = self.app.sync.jobs.get(job)
        if found.task not in self.app.tasks.handlers:
            return UnknownTask(
                "the application has no such task",
                hint="Import the module that declares it.",
                detail={"task": found.task},
            )
        reasons = ", ".join(one.reason for one in self.app.sync.jobs.explain(job))
        return JobNotRunnable(
            f"Job {job} of {found.task} cannot be claimed: {reasons or found.state}",
            hint="Its queue is paused, or claims are disabled in the settings.",
        )

    async def _drain(
        self, max_jobs: int | None, *, until_empty: bool, with_scheduled: bool
    ) -> Drained:
        limit = _RUNAWAY if max_jobs is None else max_jobs
        counts: Counter[str] = Counter()
        async with Hand(self.app, self.dsn) as hand:
            if not until_empty:
                for job in await hand.claim(min(limit, LARGEST_CLAIM)) if limit > 0 else []:
                    counts[(await hand.run(job)).outcome] += 1
                return Drained(**counts)
            looked_again = False
            while counts.total() < limit:
                claimed = await hand.claim()
                if claimed:
                    looked_again = False
                    counts[(await hand.run(claimed[0])).outcome] += 1
                    continue
                wait = self._ask(disposable.next_due()) if with_scheduled else None
                # One that is due may have come due since the claim; if the next one does not get it
                # either, nobody may claim it.
                if wait is None or (wait < 0 and looked_again):
                    return Drained(**counts)
                looked_again = wait < 0
                if wait >= 0:
                    self._ask(disposable.move_clock(wait + 0.001))
        if max_jobs is None:
            raise DrainUnfinished(f"More than {_RUNAWAY} jobs ran and others wait")
        return Drained(**counts)

    def _decoded(self, job: Runnable, attempt: Attempt) -> Any:
        """The typed result of an attempt, or the error of its handler."""
        if attempt.error is not None:
            raise attempt.error
        after = attempt.job
        if after.state is JobState.COMPLETED:
            handler = self.app.tasks.handlers[after.task]
            decode = getattr(job, "decode_result", handler.schema.result)
            return decode(after.result)
        report = attempt.report
        # A process of its own has told how it ended, and kept the exception.
        if report is not None and report.end is End.SNOOZE:
            raise Snooze(report.delay or 0, report.reason)
        if report is not None and report.end is End.CANCEL:
            raise Cancel(report.reason)
        error = after.last_error if report is None else report.error or after.last_error
        raise JobFailed(after.id, after.reason, error=error, errors=after.errors)

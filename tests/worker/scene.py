"""What tests of the worker share: an application, a worker in this process, and made-up jobs."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from psycopg.rows import namedtuple_row

from tests.support.calls import Calls
from tests.support.databases import Database
from tests.support.internals import periodic
from trunkline import Trunkline
from trunkline.db.call import Call
from trunkline.db.calls import work
from trunkline.db.pool import AsyncPool, SyncPool
from trunkline.db.runner import run
from trunkline.model import ClaimedJob
from trunkline.worker.backends import Services
from trunkline.worker.emitter import Emitter
from trunkline.worker.options import WorkerOptions
from trunkline.worker.recorder import Recorder
from trunkline.worker.roster import HeldJob
from trunkline.worker.worker import Worker

__all__ = ["DEADLINE", "Scene", "a_job", "eventually", "held_job", "no_services", "timed"]

_T = TypeVar("_T")

# Only a failing test ever takes it.
DEADLINE = 120.0

# The shortest beats that the engine allows.
_HURRY = """
select trunkline.set_setting('pulse_interval', '1 second');
select trunkline.set_setting('heartbeat_interval', '1 second');
select trunkline.set_setting('reclaim_jitter', '0 seconds');
-- A busy machine may silence a living worker for seconds.
select trunkline.set_setting('pulse_misses', '30');
"""


class Scene:
    """One test's database, which has the guard, and application."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.app = Trunkline(database.dsn)
        self.superuser = database.superuser()
        self.superuser.execute(_HURRY)
        periodic.hurry_duties(self.superuser)

    @asynccontextmanager
    async def working(
        self, options: WorkerOptions | None = None, **fields: Any
    ) -> AsyncIterator[Worker]:
        """A worker that serves the application until the block ends."""
        async with self.running(options, **fields) as (worker, _):
            yield worker

    @asynccontextmanager
    async def running(
        self, options: WorkerOptions | None = None, **fields: Any
    ) -> AsyncIterator[tuple[Worker, asyncio.Task[int]]]:
        """The same, with the task it runs in; that may end within the block."""
        worker = Worker(self.app, replace(options or WorkerOptions(), **fields))
        async with ended_in_a_hurry(worker) as running:
            yield worker, running

    async def enqueue(self, task: str, count: int = 1, **payload: Any) -> list[UUID]:
        """Enqueue so many equal jobs, through the application."""
        requests = [self.app.tasks[task].request(**payload) for _ in range(count)]
        return [job.id for job in await self.app.enqueue_many(requests)]

    def call(self, call: Call[_T]) -> _T:
        """Call the engine as a worker would."""
        return run(self.superuser, call)

    def register(self, worker: str = "w") -> None:
        """Make a worker known that is none."""
        self.call(
            work.register_worker(worker, None, None, host="here", pid=1, version="0", detail={})
        )

    def claim(self, count: int, *, worker: str = "w", task: str = "work") -> list[ClaimedJob]:
        """Enqueue so many jobs and claim them."""
        calls = Calls(self.superuser)
        if not self.value("select exists (select from trunkline.tasks where task = %s)", task):
            calls.register(task)
        calls.fill(count, task=task)
        return self.call(work.claim(worker, None, count, [task], None)).jobs

    def rows(self, query: str, *arguments: Any) -> list[Any]:
        with self.superuser.cursor(row_factory=namedtuple_row) as cursor:
            return cursor.execute(query.encode(), arguments or None).fetchall()

    def value(self, query: str, *arguments: Any) -> Any:
        return self.rows(query, *arguments)[0][0]

    def job(self, job: UUID) -> Any:
        """The job as the engine shows it."""
        return self.rows("select * from trunkline.job(%s)", job)[0]

    def state(self, job: UUID) -> str:
        found: str = self.job(job).state
        return found

    async def until_state(self, job: UUID, *states: str) -> Any:
        """Wait until the job is in one of these states; return it."""
        await eventually(lambda: self.state(job) in states, f"the job is {states}")
        return self.job(job)

    async def until_ended(self, jobs: list[UUID]) -> None:
        """Wait until none of the jobs is alive."""
        ended = (
            "select count(*) from trunkline.jobs"
            " where job_id = any(%s) and state in ('completed', 'cancelled', 'dead')"
        )
        await eventually(lambda: self.value(ended, jobs) == len(jobs), "all jobs ended")


@asynccontextmanager
async def ended_in_a_hurry(worker: Worker) -> AsyncIterator[asyncio.Task[int]]:
    """Run a worker; at the end its handlers are interrupted at once."""
    running = asyncio.create_task(worker.run())
    ready = asyncio.create_task(worker.ready())
    await asyncio.wait({running, ready}, return_when=asyncio.FIRST_COMPLETED)
    ready.cancel()
    if running.done():
        running.result()
        raise AssertionError("the worker ended at once")
    try:
        yield running
    finally:
        worker.stop()
        worker.stop()
        await asyncio.wait({running})
        if not running.cancelled():
            running.result()


async def eventually(condition: Callable[[], _T], what: str, *, deadline: float = DEADLINE) -> _T:
    """Look until the condition holds and return its value; fail after the deadline."""
    end = time.monotonic() + deadline
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline} s: {what}")
        await asyncio.sleep(0.005)


def timed() -> Callable[[], float]:
    """A stopwatch: seconds since now."""
    begin = time.monotonic()
    return lambda: time.monotonic() - begin


def a_job(task: str = "work", payload: str = "{}", **fields: Any) -> ClaimedJob:
    """A claimed job that no database knows."""
    now = datetime.now(UTC)
    job = ClaimedJob(
        job_id=uuid.uuid4(),
        attempt=1,
        task=task,
        payload=payload,
        queue="default",
        tenant=None,
        correlation_id=None,
        tags=None,
        failures=0,
        max_attempts=5,
        claimed_at=now,
        lease_expires_at=now + timedelta(minutes=5),
        hard_deadline=now + timedelta(minutes=20),
        last_error=None,
    )
    return job._replace(**fields)


def held_job(task: str = "work", payload: str = "{}", **fields: Any) -> HeldJob:
    """The same in the hands of a worker."""
    return HeldJob(a_job(task, payload, **fields), time.monotonic())


def no_services(dsn: str = "") -> Services:
    """For handlers that ask nothing of their worker."""
    return Services(
        dsn,
        "worker",
        AsyncPool(dsn),
        SyncPool(dsn),
        forget=lambda _held: None,
        recorder=Recorder(dsn, "worker"),
        emitter=Emitter(dsn, "worker"),
    )

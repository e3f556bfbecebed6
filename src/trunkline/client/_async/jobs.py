"""Existing jobs: read them, wait for them, change them."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, Unpack, overload
from uuid import UUID

from trunkline.artifacts.results import reference_of
from trunkline.client.request import OptionArguments, Options, Request
from trunkline.db.calls import produce, read
from trunkline.db.notices import task_in_notice
from trunkline.db.patient import CALL_PATIENCE
from trunkline.errors import (
    ArtifactGone,
    ConnectionLost,
    DatabaseProblem,
    DatabaseUnreachable,
    FileMissing,
    InvalidArgument,
    JobCancelled,
    JobFailed,
    PayloadMismatch,
    StoreNotConfigured,
    UnknownJob,
    WaitTimeout,
)
from trunkline.model import (
    Artifact,
    ChangedJob,
    Duration,
    Enqueued,
    Explanation,
    Job,
    JobEvent,
    JobEvents,
    JobState,
    seconds,
)
from trunkline.model.codec import encode

if TYPE_CHECKING:
    from trunkline.client._async.connection import AsyncClient

__all__ = ["STATES", "AsyncJobHandle", "AsyncJobs"]

R = TypeVar("R")

# How often a waiting client reads the job: often at first, since most waits are for short jobs.
_FIRST_PAUSE = 0.005
_LONGEST_PAUSE = 0.5
_SLOWER = 1.5
# Most jobs that somebody waits for are short. A wait that takes longer follows the job.
_QUICK = 0.1
# A wait reads the whole job again this often, which also reports errors of the connection.
_READ_EVERY = 30.0
# The last read of a wait may take this long, however little time is left.
_SHORTEST_READ = 0.1
# JobState(value) takes twenty times as long.
STATES: Final = {state.value: state for state in JobState}


class AsyncJobs:
    """The jobs of an application; `app.jobs`."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def enqueue(
        self, task: str, payload: dict[str, Any] | None = None, **options: Unpack[OptionArguments]
    ) -> AsyncJobHandle[Any]:
        """Enqueue a job by the name of its task, without importing its handler."""
        try:
            document = encode(payload or {}, in_order=options.get("idempotency_key") is not None)
        except TypeError as error:
            raise PayloadMismatch(f"The payload of {task} is not JSON: {error}") from error
        request: Request[Any] = Request(
            task, document, Options().but(**options), lambda value: value
        )
        return (await self._client.enqueue_many([request]))[0]

    async def get(self, job: UUID | str | AsyncJobHandle[Any]) -> Job:
        """Return one job, with its payload, its result and the errors of its attempts.

        A result in the store is read from there. If that is not possible, because there is no store
        or the file was deleted, the result is a reference: `{"$artifact": id}`.
        """
        found = await self._find(_id(job), CALL_PATIENCE)
        if reference_of(found.result) is None:
            return found
        try:
            value = await self._client.artifacts.resolve(found.result, found.id)
        except (ArtifactGone, FileMissing, StoreNotConfigured):
            return found
        return replace(found, result=value)

    async def _find(self, job_id: UUID, patience: float) -> Job:
        job = await self._client.run(read.job(job_id), patience)
        if job is None:
            raise _unknown(job_id, self._client.server)
        return job

    async def list(
        self,
        *,
        state: JobState | str | Sequence[JobState | str] | None = None,
        task: str | None = None,
        queue: str | None = None,
        tenant: str | None = None,
        limit: int = 100,
        before: UUID | str | None = None,
    ) -> list[Job]:
        """Return jobs, newest first, without payloads. `before` is the last id of the last page.

        If few jobs match, this reads on until the page is full: seconds per million jobs.
        """
        states = None if state is None else _states(state)
        place = None if before is None else _id(before)
        return await self._client.run(
            read.list_jobs(
                states=states, task=task, queue=queue, tenant=tenant, limit=limit, before=place
            )
        )

    @overload
    async def wait(self, job: AsyncJobHandle[R], timeout: Duration | None = None) -> R: ...
    @overload
    async def wait(self, job: UUID | str, timeout: Duration | None = None) -> Any: ...
    async def wait(
        self,
        job: UUID | str | AsyncJobHandle[Any],
        timeout: Duration | None = None,
    ) -> Any:
        """Wait until a job has ended; return its result or raise JobFailed or JobCancelled."""
        limit = None if timeout is None else seconds(timeout)
        end = None if limit is None else time.monotonic() + limit
        pause = _FIRST_PAUSE
        quick_until = time.monotonic() + _QUICK
        while not (state := await self._read(job, end)) or not state.state.final:
            if end is not None and time.monotonic() >= end:
                raise WaitTimeout(_id(job), limit or 0.0, server=self._client.server)
            if state is not None and time.monotonic() > quick_until:
                await self._until_final(_id(job), end)
                continue
            remaining = pause if end is None else min(pause, end - time.monotonic())
            await asyncio.sleep(max(remaining, 0.0) * random.uniform(0.9, 1.1))  # noqa: S311
            pause = min(pause * _SLOWER, _LONGEST_PAUSE)
        value = await self._client.artifacts.resolve(_result(state), state.id)
        return job.decode_result(value) if isinstance(job, AsyncJobHandle) else value

    async def _until_final(self, job: UUID, end: float | None) -> None:
        """Follow a job until it has ended, the time is over, or it is to be read as a whole."""
        last = time.monotonic() + _READ_EVERY
        until = last if end is None else min(end, last)
        watch = self._client.live.open("job", job)
        try:
            while True:
                state = await watch.read(timeout=max(until - time.monotonic(), 0.0))
                if state is None or state.final:
                    return
        except TimeoutError:
            return
        finally:
            watch.close()

    async def follow(
        self,
        job: UUID | str | AsyncJobHandle[Any],
        *,
        after: str | None = None,
        timeout: Duration | None = None,
    ) -> AsyncIterator[JobEvent]:
        """Yield the present state of a job, then its changes and the text that it emits.

        The last event is of kind `end`. `after` is the id of an event that you have received: the
        text continues after it. Raises WaitTimeout if the job has not ended within the timeout.
        """
        known = _id(job)
        limit = None if timeout is None else seconds(timeout)
        end = None if limit is None else time.monotonic() + limit
        events = JobEvents(after)
        watch = self._client.live.open("job", known)
        try:
            while not events.ended:
                remaining = None if end is None else max(end - time.monotonic(), 0.0)
                state = await watch.read(events.attempt, events.number, remaining)
                if state is None:
                    raise _unknown(known, self._client.server)
                for event in events.of(state):
                    yield event
        except TimeoutError as error:
            raise WaitTimeout(known, limit or 0.0, server=self._client.server) from error
        finally:
            watch.close()

    async def _read(self, job: UUID | str | AsyncJobHandle[Any], end: float | None) -> Job | None:
        """Return the job, or None if the server is away for a moment, which must not end a wait."""
        remaining = CALL_PATIENCE if end is None else end - time.monotonic()
        try:
            return await self._find(_id(job), min(max(remaining, _SHORTEST_READ), CALL_PATIENCE))
        except ConnectionLost:
            # The call may have used up the remaining time. Then `wait` raises WaitTimeout.
            return None
        except (DatabaseUnreachable, DatabaseProblem) as error:
            over = end is not None and time.monotonic() >= end
            if over or not getattr(error, "retryable", True):
                raise
            return None

    async def artifacts_of(self, job: UUID | str | AsyncJobHandle[Any]) -> Sequence[Artifact]:
        """Return the first thousand artifacts of a job; none before it has completed."""
        return await self._client.artifacts.list(job=_id(job), limit=1000)

    async def cancel(
        self, job: UUID | str | AsyncJobHandle[Any], reason: str | None = None
    ) -> ChangedJob:
        """Cancel a waiting job at once, or ask the worker of a running one to stop."""
        return await self._client.run(produce.cancel(_id(job), reason))

    async def retry(self, job: UUID | str | AsyncJobHandle[Any]) -> Enqueued:
        """Run a dead letter again under its id, or an ended job as a new one."""
        return await self._client.run(produce.retry(_id(job)))

    async def explain(self, job: UUID | str | AsyncJobHandle[Any]) -> Sequence[Explanation]:
        """Return why a job is not running, and until when."""
        return await self._client.run(read.explain(_id(job)))


class AsyncJobHandle(Generic[R]):
    """A job that was enqueued; R is the type of its result."""

    __slots__ = ("_decode", "_id", "_jobs", "created", "run_at", "state", "task")

    def __init__(
        self,
        jobs: AsyncJobs,
        request: Request[R],
        job_id: UUID | bytes,
        state: JobState,
        run_at: datetime,
        *,
        created: bool = True,
        task: str | None = None,
    ) -> None:
        self._jobs = jobs
        self._decode = request.decode_result
        self._id = job_id
        # In a profile, a unique key may have returned a job of another task.
        self.task = request.task if task is None else task
        # False if a key returned a job that already existed.
        self.created = created
        # As of the enqueue; `get` returns the present state.
        self.state = state
        self.run_at = run_at

    @classmethod
    def of(cls, jobs: AsyncJobs, request: Request[R], answer: Enqueued) -> AsyncJobHandle[R]:
        """Return the handle of one job from the engine's answer."""
        job, state, created = answer.job_id, STATES[answer.state], answer.created
        task = None if created else task_in_notice(job)
        return cls(jobs, request, job, state, answer.run_at, created=created, task=task)

    @property
    def id(self) -> UUID:
        """The id of the job."""
        if isinstance(self._id, bytes):
            self._id = UUID(bytes=self._id)
        return self._id

    def __repr__(self) -> str:
        return f"<job {self.id} of {self.task}>"

    async def get(self) -> Job:
        """Return the job, with its payload, its result and the errors of its attempts."""
        return await self._jobs.get(self.id)

    async def wait(self, timeout: Duration | None = None) -> R:
        """Wait until the job has ended; return its result or raise JobFailed or JobCancelled."""
        return await self._jobs.wait(self, timeout)

    async def artifacts(self) -> Sequence[Artifact]:
        """Return the first thousand artifacts of the job; none before it has completed."""
        return await self._jobs.artifacts_of(self.id)

    def follow(
        self, *, after: str | None = None, timeout: Duration | None = None
    ) -> AsyncIterator[JobEvent]:
        """Yield the present state of the job, then its changes and the text that it emits."""
        return self._jobs.follow(self.id, after=after, timeout=timeout)

    async def cancel(self, reason: str | None = None) -> ChangedJob:
        """Cancel the job at once if it waits, or ask its worker to stop it."""
        return await self._jobs.cancel(self.id, reason)

    def decode_result(self, value: Any) -> R:
        """Return a stored result as the type in the handler's annotation."""
        decoded: R = self._decode(value)
        return decoded


def _id(job: UUID | str | AsyncJobHandle[Any]) -> UUID:
    if isinstance(job, AsyncJobHandle):
        return job.id
    if isinstance(job, UUID):
        return job
    try:
        return UUID(job)
    except (ValueError, AttributeError, TypeError) as error:
        raise InvalidArgument(
            "a job id is not a UUID",
            hint="Pass the id that enqueue returned.",
            detail={"job": repr(job)},
        ) from error


def _unknown(job: UUID, server: str) -> UnknownJob:
    return UnknownJob(
        "unknown job",
        hint="Check the id; ended jobs are kept for the retention of their kind.",
        detail={"job": str(job), "server": server},
    )


def _states(states: JobState | str | Sequence[JobState | str]) -> Sequence[JobState]:
    names = [states] if isinstance(states, str) else list(states)
    try:
        return [JobState(name) for name in names]
    except ValueError as error:
        raise InvalidArgument(
            "unknown state", hint="Pass one of " + ", ".join(JobState), detail={"state": str(error)}
        ) from error


def _result(job: Job) -> Any:
    if job.state is JobState.CANCELLED:
        raise JobCancelled(job.id, job.reason)
    if job.state is JobState.DEAD:
        raise JobFailed(job.id, job.reason, error=job.last_error, errors=job.errors)
    return job.result

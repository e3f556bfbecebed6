"""Jobs that exist: look at them, wait for them, change them."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, Unpack, overload
from uuid import UUID

from trunkline.client.codec import encode
from trunkline.client.request import OptionArguments, Options, Request
from trunkline.db.calls import produce, read
from trunkline.db.notices import task_in_notice
from trunkline.db.patient import CALL_PATIENCE
from trunkline.errors import (
    ConnectionLost,
    DatabaseProblem,
    DatabaseUnreachable,
    InvalidArgument,
    JobCancelled,
    JobFailed,
    PayloadMismatch,
    UnknownJob,
    WaitTimeout,
)
from trunkline.model import ChangedJob, Duration, Enqueued, Explanation, Job, JobState, seconds

if TYPE_CHECKING:
    from trunkline.client._async.connection import AsyncClient

__all__ = ["STATES", "AsyncJobHandle", "AsyncJobs"]

R = TypeVar("R")

# How often a waiting client looks: often at first, since most waits are for short jobs.
_FIRST_LOOK = 0.005
_LAST_LOOK = 0.5
_SLOWER = 1.5
# The last look of a wait gets this long however little time is left.
_SHORTEST_LOOK = 0.1


# Calling the enumeration takes twenty times as long.
STATES: Final = {state.value: state for state in JobState}


class AsyncJobs:
    """The jobs of an application; `app.jobs`."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def enqueue(
        self, task: str, payload: dict[str, Any] | None = None, **options: Unpack[OptionArguments]
    ) -> AsyncJobHandle[Any]:
        """Enqueue by name, where the handler is not at hand."""
        try:
            document = encode(payload or {}, in_order=options.get("idempotency_key") is not None)
        except TypeError as error:
            raise PayloadMismatch(f"The payload of {task} is not JSON: {error}") from error
        request: Request[Any] = Request(
            task, document, Options().but(**options), lambda value: value
        )
        return (await self._client.enqueue_many([request]))[0]

    async def get(self, job: UUID | str | AsyncJobHandle[Any]) -> Job:
        """Everything about one job, with payload, result and the errors of its attempts."""
        return await self._find(_id(job), CALL_PATIENCE)

    async def _find(self, job_id: UUID, patience: float) -> Job:
        found = await self._client.run(read.job(job_id), patience)
        if found is None:
            raise UnknownJob(
                "unknown job",
                hint="Check the id; ended jobs are kept for the retention of their kind.",
                detail={"job": str(job_id), "server": self._client.server},
            )
        return found

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
        """Jobs, newest first, without payloads; `before` is the last id of the page before.

        If few jobs match, it reads until the page is full: seconds per million jobs.
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
        pause = _FIRST_LOOK
        while not (found := await self._look(job, end)) or not found.state.final:
            if end is not None and time.monotonic() >= end:
                raise WaitTimeout(_id(job), limit or 0.0, server=self._client.server)
            left = pause if end is None else min(pause, end - time.monotonic())
            await asyncio.sleep(max(left, 0.0) * random.uniform(0.9, 1.1))  # noqa: S311
            pause = min(pause * _SLOWER, _LAST_LOOK)
        value = _result(found)
        return job.decode_result(value) if isinstance(job, AsyncJobHandle) else value

    async def _look(self, job: UUID | str | AsyncJobHandle[Any], end: float | None) -> Job | None:
        """A server that is away for a moment does not end a wait; None then."""
        left = CALL_PATIENCE if end is None else end - time.monotonic()
        try:
            return await self._find(_id(job), min(max(left, _SHORTEST_LOOK), CALL_PATIENCE))
        except ConnectionLost:
            # No answer within what was left of the time, perhaps: the time is what is over.
            return None
        except (DatabaseUnreachable, DatabaseProblem) as error:
            over = end is not None and time.monotonic() >= end
            if over or not getattr(error, "retryable", True):
                raise
            return None

    async def cancel(
        self, job: UUID | str | AsyncJobHandle[Any], reason: str | None = None
    ) -> ChangedJob:
        """Cancel a waiting job at once, or ask the worker of a running one to stop."""
        return await self._client.run(produce.cancel(_id(job), reason))

    async def retry(self, job: UUID | str | AsyncJobHandle[Any]) -> Enqueued:
        """Run a dead letter again under its id, or an ended job as a new one."""
        return await self._client.run(produce.retry(_id(job)))

    async def explain(self, job: UUID | str | AsyncJobHandle[Any]) -> Sequence[Explanation]:
        """Why a job is not running, and until when."""
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
        # That of the job: a unique key in a profile may have led to a job of another task.
        self.task = request.task if task is None else task
        # False when a key led to a job that was there before.
        self.created = created
        # When it was enqueued; `get` has the present.
        self.state = state
        self.run_at = run_at

    @classmethod
    def of(cls, jobs: AsyncJobs, request: Request[R], answer: Enqueued) -> AsyncJobHandle[R]:
        """The handle of one job as the engine answered."""
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
        """Everything about the job."""
        return await self._jobs.get(self.id)

    async def wait(self, timeout: Duration | None = None) -> R:
        """Wait until it has ended; return its result or raise JobFailed or JobCancelled."""
        return await self._jobs.wait(self, timeout)

    async def cancel(self, reason: str | None = None) -> ChangedJob:
        """Cancel it."""
        return await self._jobs.cancel(self.id, reason)

    def decode_result(self, value: Any) -> R:
        """Turn a stored result into the type of the handler."""
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


def _states(given: JobState | str | Sequence[JobState | str]) -> Sequence[JobState]:
    names = [given] if isinstance(given, str) else list(given)
    try:
        return [JobState(name) for name in names]
    except ValueError as error:
        raise InvalidArgument(
            "unknown state", hint="One of " + ", ".join(JobState), detail={"state": str(error)}
        ) from error


def _result(job: Job) -> Any:
    if job.state is JobState.CANCELLED:
        raise JobCancelled(job.id, job.reason)
    if job.state is JobState.DEAD:
        raise JobFailed(job.id, job.reason, error=job.last_error, errors=job.errors)
    return job.result

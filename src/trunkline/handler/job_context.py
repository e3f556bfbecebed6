"""The properties of a job that every context has."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NoReturn, Protocol
from uuid import UUID

from trunkline.model import ClaimedJob, Duration, Snooze
from trunkline.telemetry import JobLogger

__all__ = ["JobBackend", "JobContext"]


class JobBackend(Protocol):
    """The implementation of every context: in the worker, in a child process, or in a test."""

    def cancelled(self) -> bool:
        """See JobContext.cancelled."""

    @property
    def worker(self) -> str:
        """See JobContext.worker."""


class JobContext:
    """The common part of `Context` and `SyncContext`, for helpers that take either."""

    __slots__ = ("_backend", "_job", "_log", "result")

    def __init__(self, job: ClaimedJob, backend: JobBackend) -> None:
        self._job = job
        self._backend = backend
        self._log: JobLogger | None = None
        # Stored by `transaction()`. Otherwise the return value of the handler is the result.
        self.result: Any = None

    @property
    def job_id(self) -> UUID:
        """The id of the job."""
        return self._job.job_id

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1; also its fencing token."""
        return self._job.attempt

    @property
    def task(self) -> str:
        """The name of the task."""
        return self._job.task

    @property
    def queue(self) -> str:
        """The queue that the job came from."""
        return self._job.queue

    @property
    def worker(self) -> str:
        """The id of the worker that runs the attempt; each start has a new one."""
        return self._backend.worker

    @property
    def cancelled(self) -> bool:
        """Whether the job is being cancelled or was lost."""
        return self._backend.cancelled()

    @property
    def workflow_id(self) -> UUID | None:
        """The id of the workflow that the job belongs to; None for a plain job."""
        return self._job.workflow_id

    @property
    def tenant(self) -> str | None:
        """The tenant of the job."""
        return self._job.tenant

    @property
    def correlation_id(self) -> str | None:
        """The id that the producer passed to follow one request through several jobs."""
        return self._job.correlation_id

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags of the job."""
        return tuple(self._job.tags or ())

    @property
    def failures(self) -> int:
        """How many earlier attempts failed or were lost."""
        return self._job.failures

    @property
    def max_attempts(self) -> int:
        """The number of failures after which the job is dead."""
        return self._job.max_attempts

    @property
    def last_error(self) -> Mapping[str, Any] | None:
        """The error of the attempt before this one; `app.jobs.get` has all of them."""
        return self._job.last_error

    @property
    def deadline(self) -> datetime:
        """The hard limit of this attempt, by the clock of the server."""
        return self._job.hard_deadline

    @property
    def log(self) -> JobLogger:
        """A logger that adds job, attempt, task and correlation id to every line."""
        if self._log is None:
            self._log = JobLogger(self._job)
        return self._log

    def snooze(self, delay: Duration, reason: str | None = None) -> NoReturn:
        """End this attempt now and defer the job, without counting a failure."""
        raise Snooze(delay, reason)

"""What a handler is given of its job and its worker."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from datetime import datetime
from decimal import Decimal
from typing import Any, NoReturn, Protocol
from uuid import UUID

from trunkline.client.flow import Answer, Flow, GrantRequest, Http, amounts
from trunkline.model import ClaimedJob, Duration, Snooze
from trunkline.telemetry import JobLogger

__all__ = ["Context", "ContextBackend", "Transaction"]


class Transaction(AbstractAsyncContextManager[Any], AbstractContextManager[Any]):
    """Gives a psycopg connection; leaving the block completes the job in the same commit.

    `async with` in an asynchronous handler gives an AsyncConnection, `with` in a synchronous one a
    Connection. An error in the block undoes the writes and fails the attempt; if the error is the
    loss of the database, the attempt is handed back and not counted as a failure. If another
    attempt owns the job by then, nothing is committed and StaleAttempt is raised. If the worker has
    received a cancel request, nothing is committed and Cancel is raised, which ends the job as
    cancelled.
    """


class ContextBackend(Protocol):
    """What stands behind a context: the worker, a child process, or a test."""

    def progress(
        self, percent: int | None, message: str | None, phase: str | None
    ) -> Awaitable[None]:
        """Record progress; raises Cancel or StaleAttempt where the engine says so."""

    def transaction(self, ctx: Context) -> Transaction:
        """See Context.transaction."""

    def cancelled(self) -> bool:
        """See Context.cancelled."""

    @property
    def flow(self) -> Flow:
        """Limits and providers."""

    @property
    def worker(self) -> str:
        """See Context.worker."""


class Context:
    """The job a handler runs, and what it may ask of its worker.

    A handler that wants it takes it as its first parameter, annotated `Context`.
    """

    __slots__ = ("_backend", "_job", "_log", "result")

    def __init__(self, job: ClaimedJob, backend: ContextBackend) -> None:
        self._job = job
        self._backend = backend
        self._log: JobLogger | None = None
        # Stored by `transaction()`; elsewhere the return value of the handler is the result.
        self.result: Any = None

    @property
    def job_id(self) -> UUID:
        """The job."""
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
        """The queue the job came from."""
        return self._job.queue

    @property
    def worker(self) -> str:
        """The worker that runs the attempt; its id is another one after every start."""
        return self._backend.worker

    @property
    def tenant(self) -> str | None:
        """Whose job it is."""
        return self._job.tenant

    @property
    def correlation_id(self) -> str | None:
        """What the producer passed to follow one request through several jobs."""
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
        """After how many failures the job is dead."""
        return self._job.max_attempts

    @property
    def last_error(self) -> Mapping[str, Any] | None:
        """The error of the attempt before this one; `app.jobs.get` has all of them."""
        return self._job.last_error

    @property
    def deadline(self) -> datetime:
        """When this attempt is ended whatever it does, by the clock of the server."""
        return self._job.hard_deadline

    @property
    def log(self) -> JobLogger:
        """A logger that adds job, attempt, task and correlation id to every line."""
        if self._log is None:
            self._log = JobLogger(self._job)
        return self._log

    @property
    def cancelled(self) -> bool:
        """Whether the job is to be cancelled or was lost; a thread looks at it now and then."""
        return self._backend.cancelled()

    def progress(
        self, percent: int | None = None, message: str | None = None, *, phase: str | None = None
    ) -> Awaitable[None]:
        """Record how far the work is. Await it in an asynchronous handler; elsewhere just call it.

        Raises Cancel when the job is to be cancelled and StaleAttempt when it was lost.
        """
        return self._backend.progress(percent, message, phase)

    def transaction(self) -> Transaction:
        """Open a transaction in which the handler's writes and the completion commit together."""
        return self._backend.transaction(self)

    def grant(
        self,
        limit: str,
        *,
        tokens: int | None = None,
        requests: int | None = None,
        units: int | None = None,
        keys: Mapping[str, Any] | None = None,
        wait: bool | Duration | None = None,
        ttl: Duration = "5m",
    ) -> GrantRequest:
        """Take of a limit for a call within the handler: `async with ctx.grant("openai")`.

        Plain handlers write `with`. Keys in braces are filled in from `keys`, then from the
        payload. Without room it waits for up to 90 seconds; where there will be none by then, or
        the limit is paused or its quota spent, it raises LimitExhausted, which puts the attempt
        off. `wait="10m"` waits for up to that long, `wait=True` for as long as it takes, both also
        for a quota; `wait=False` not at all. A slot that is not given back comes back after `ttl`,
        or with the end of the attempt.
        """
        cost = amounts(tokens=tokens, requests=requests, units=units)
        return self._backend.flow.grant(limit, cost=cost, keys=keys or {}, wait=wait, ttl=ttl)

    def settle(
        self,
        *,
        tokens: int | None = None,
        requests: int | None = None,
        units: int | None = None,
        cost: float | Decimal | None = None,
    ) -> Answer[bool]:
        """Say what the attempt really took of what its claim charged; the first time counts.

        Await it in an asynchronous handler; elsewhere just call it. What is left out stays as it
        was estimated. `cost` is money, for the books.
        """
        actual = amounts(tokens=tokens, requests=requests, units=units, cost=cost)
        return self._backend.flow.settle(actual)

    @property
    def http(self) -> Http:
        """Calls to providers that heed limits and settle by themselves."""
        return self._backend.flow.http

    def snooze(self, delay: Duration, reason: str | None = None) -> NoReturn:
        """End this attempt now and come back after the delay, without counting a failure."""
        raise Snooze(delay, reason)

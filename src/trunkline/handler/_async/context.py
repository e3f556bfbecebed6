"""The context of a handler: its job, and the services of its worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, overload

from trunkline.artifacts import AsyncUploads
from trunkline.artifacts.content import AsyncContent
from trunkline.errors import NotInWorkflow
from trunkline.handler._async.grants import AsyncGrants, GrantRequest
from trunkline.handler._async.steps import AsyncSteps
from trunkline.handler.amounts import amounts
from trunkline.handler.child_jobs import ChildRequest
from trunkline.handler.durations import total_seconds
from trunkline.handler.http.terms import terms
from trunkline.handler.job_context import JobBackend, JobContext
from trunkline.handler.step_calls import StepCalls
from trunkline.handler.step_functions import INSIDE
from trunkline.handler.transactions import Transaction
from trunkline.model import ClaimedJob, Duration, Suspended, UploadedFile, WorkflowPlace
from trunkline.model import seconds as as_seconds

if TYPE_CHECKING:
    import httpx2

__all__ = ["AsyncBackend", "Context"]

T = TypeVar("T")


class AsyncBackend(JobBackend, Protocol):
    """The implementation of a context: in the worker, in a child process, or in a test."""

    async def progress(self, percent: int | None, message: str | None, phase: str | None) -> None:
        """Record progress; raise Cancel or StaleAttempt if the engine returns such a verdict."""

    async def emit(self, text: str) -> None:
        """See Context.emit."""

    async def workflow(self) -> WorkflowPlace:
        """See Context.workflow."""

    def transaction(self, ctx: Context) -> Transaction:
        """See Context.transaction."""

    @property
    def grants(self) -> AsyncGrants:
        """Limits and providers that the attempt can use."""

    @property
    def steps(self) -> AsyncSteps:
        """The durable steps of the attempt."""

    @property
    def uploads(self) -> AsyncUploads:
        """Uploads of files to the store."""

    @property
    def has_waited(self) -> bool:
        """Whether a wait has ended the attempt."""


class Context(StepCalls, JobContext):
    """The job that an `async def` handler runs, and the services of its worker.

    Take it as the first parameter, annotated `Context`. Plain handlers take `SyncContext`.
    """

    __slots__ = ("_http",)

    def __init__(self, job: ClaimedJob, backend: AsyncBackend) -> None:
        super().__init__(job, backend)
        self._backend: AsyncBackend = backend
        self._http: httpx2.AsyncClient | None = None

    async def progress(
        self, percent: int | None = None, message: str | None = None, *, phase: str | None = None
    ) -> None:
        """Record the progress of the job.

        Raises Cancel if the job is being cancelled and StaleAttempt if it was lost.
        """
        await self._backend.progress(percent, message, phase)

    async def emit(self, text: str) -> None:
        """Send partial output, such as tokens of a language model, to those who follow the job.

        It returns at once; the worker stores the text of a tenth of a second together. The text is
        not part of a transaction, and the result of the job is separate from it. An attempt may
        emit 1 MB, beyond which it raises EmitTooLarge; a later attempt starts with nothing.
        """
        await self._backend.emit(text)

    async def workflow(self) -> WorkflowPlace:
        """Return the workflow that the job belongs to: name, params, step and generation.

        Raises NotInWorkflow for a plain job; `ctx.workflow_id` is None there.
        """
        if self._job.workflow_id is None:
            raise NotInWorkflow(f"Job {self._job.job_id} of {self._job.task} is a plain job")
        return await self._backend.workflow()

    async def artifact(
        self,
        name: str,
        content: AsyncContent,
        *,
        kind: str | None = None,
        duration: float | None = None,
        content_type: str | None = None,
    ) -> UploadedFile:
        """Upload a file, which becomes an artifact of the job when the job completes.

        `content` is bytes, a `pathlib.Path`, a binary file or an iterator of bytes, which may be
        asynchronous. It is streamed: memory does not grow with the file. `kind` groups artifacts
        for retention, such as "audio_mp3"; it follows from the name if left out, as does the
        content type. `duration` is in seconds. Of two uploads with the same kind and name, the last
        counts. A file that a durable step uploads belongs to the step: it is published by the
        attempt that completes the job, even if that is a later one, and removed if the step fails.
        A spent quota raises StorageQuotaExceeded.
        """
        inside = INSIDE.get()
        uploaded = await self._backend.uploads.add(
            name,
            content,
            kind=kind,
            duration=duration,
            content_type=content_type,
            step=None if inside is None else inside.name,
            key=None if inside is None else inside.key,
        )
        if inside is not None:
            inside.files.append(uploaded.id)
        return uploaded

    def transaction(self) -> Transaction:
        """Open a transaction in which the handler's writes and the completion commit together."""
        return self._backend.transaction(self)

    @property
    def _steps(self) -> AsyncSteps:
        return self._backend.steps

    def check_suspended(self) -> None:
        """Raise Suspended if a wait has ended the attempt, but the handler swallowed that.

        Workers call it after the handler.
        """
        if self._backend.has_waited:
            raise Suspended

    async def sleep(
        self,
        duration: Duration = 0,
        *,
        seconds: float = 0,
        minutes: float = 0,
        hours: float = 0,
        days: float = 0,
        key: str | None = None,
    ) -> None:
        """Sleep without a slot: the job ends this attempt and continues in another one.

        `ctx.sleep("3h")` and `ctx.sleep(hours=3)` are the same. Statements before it run again in
        the next attempt, except those within steps. A sleep below 5 seconds keeps its slot.
        """
        total = total_seconds(duration, seconds, minutes, hours, days)
        await self._backend.steps.sleep(total, key)

    async def gather_jobs(
        self,
        requests: Sequence[ChildRequest[T]],
        *,
        detach: bool = False,
        key: str | None = None,
        on_change: Literal["fail", "reuse"] = "fail",
    ) -> list[T]:
        """Start jobs and wait for them without a slot; return their results in order.

        Each request is `task.request(...)`. The jobs have the tenant and the priority of this one.
        If one of them is dead or cancelled, it raises ChildJobFailed with its id. When this job is
        cancelled or dead, they are cancelled too, unless `detach` is true. Later attempts find the
        jobs of the first one. If they ask for other tasks or payloads, it raises StepChanged, which
        makes this job dead; with `on_change="reuse"` they receive the results of the jobs that were
        started, however many: all of the first task, then those of the next.
        """
        return await self._backend.steps.gather(requests, key, detach=detach, on_change=on_change)

    @overload
    async def wait_for(
        self, name: str, *, timeout: Duration | None = None, key: str | None = None
    ) -> Any: ...
    @overload
    async def wait_for(
        self, name: str, kind: type[T], *, timeout: Duration | None = None, key: str | None = None
    ) -> T: ...
    async def wait_for(
        self,
        name: str,
        kind: Any = None,
        *,
        timeout: Duration | None = None,
        key: str | None = None,
    ) -> Any:
        """Wait without a slot until an event is sent to this job, and return its payload.

        With `key`, the event is sent to that key, within the tenant of the job. The payload is
        read as `kind`. After `timeout`, counted from the first attempt that waited, it raises
        EventTimeout. An event that was sent before is received at once.
        """
        limit = None if timeout is None else as_seconds(timeout)
        return await self._backend.steps.wait_for(name, kind, limit, key)

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
        """Acquire a grant in a limit for one call: `async with ctx.grant("openai") as grant`.
        Keys in braces are filled in from `keys`, then from the payload. If there is no room, it
        waits for up to 90 seconds. If there will be none by then, or the limit is paused or its
        quota spent, it raises LimitExhausted, which defers the attempt. `wait="10m"` waits for up
        to that long and `wait=True` without a bound, both also for a quota; `wait=False` does not
        wait. A slot that the handler does not free is free again after `ttl`, or when the attempt
        ends.
        """
        cost = amounts(tokens=tokens, requests=requests, units=units)
        return self._backend.grants.grant(limit, cost=cost, keys=keys or {}, wait=wait, ttl=ttl)

    async def settle(
        self,
        *,
        tokens: int | None = None,
        requests: int | None = None,
        units: int | None = None,
        cost: float | Decimal | None = None,
    ) -> bool:
        """Report the actual cost of the attempt, for which its claim has charged an estimate.
        Only the first settlement counts, and returns True. Amounts that are left out stay as
        estimated. `cost` is money, for the usage ledger.
        """
        actual = amounts(tokens=tokens, requests=requests, units=units, cost=cost)
        return await self._backend.grants.settle(actual)

    @property
    def http(self) -> httpx2.AsyncClient:
        """A client whose calls acquire grants in the task's limit and settle them.

        See `http_client` for what each call does. Needs `pip install 'trunkline[http]'`.
        """
        if self._http is None:
            self._http = self.http_client()
        return self._http

    def http_client(
        self,
        *,
        limit: str | Literal[False] | None = None,
        keys: Mapping[str, Any] | None = None,
        tokens: int | None = None,
        requests: int = 1,
        units: int | None = None,
        wait: bool | Duration | None = None,
        settle: Callable[[httpx2.Response], Mapping[str, Any]] | None = None,
        raise_for_limit: bool = True,
    ) -> httpx2.AsyncClient:
        """Return a client whose calls acquire grants in a limit and settle them.
        The limit is the first that the task names, or the given one, or none with `limit=False`.
        Its keys are filled in from `keys`, then from the payload. `tokens`, `requests` and `units`
        are the estimate for each call; `wait` is that of `grant`. `settle` returns the actual cost
        of an answer, such as `{"tokens": 812}`; the default is `usage.total_tokens` of a JSON
        answer. A quota in bytes, and `units` if given, are settled with the bytes that arrived,
        headers included, also if the call fails.

        `timeout=` is the total of connecting, headers and body, 10 seconds by default; waiting for
        room is not part of it. After a 429, or a 503 with Retry-After, the bucket is paused for
        everyone, and RateLimited is raised, which defers the attempt; `raise_for_limit=False`
        returns such an answer instead. Redirects are followed only if you ask for it, and never
        carry credentials to another host. Proxy variables of the environment are ignored. You need
        not close the client: its connections belong to the worker.
        """
        return self._backend.grants.http_client(
            terms(
                limit=limit,
                keys=keys,
                tokens=tokens,
                requests=requests,
                units=units,
                wait=wait,
                settle=settle,
                raise_for_limit=raise_for_limit,
            )
        )

"""The context of a handler: its job, and what it may ask of its worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, Protocol

from trunkline.handler._async.grants import AsyncGrants, GrantRequest
from trunkline.handler.amounts import amounts
from trunkline.handler.http.terms import terms
from trunkline.handler.job_context import JobBackend, JobContext
from trunkline.handler.transactions import Transaction
from trunkline.model import ClaimedJob, Duration

if TYPE_CHECKING:
    import httpx2

__all__ = ["AsyncBackend", "Context"]


class AsyncBackend(JobBackend, Protocol):
    """What stands behind a context: the worker, a child process, or a test."""

    async def progress(self, percent: int | None, message: str | None, phase: str | None) -> None:
        """Record progress; raises Cancel or StaleAttempt if the engine reports it."""

    def transaction(self, ctx: Context) -> Transaction:
        """See Context.transaction."""

    @property
    def grants(self) -> AsyncGrants:
        """The limits and providers of the attempt."""


class Context(JobContext):
    """The job that an `async def` handler runs, and what it may ask of its worker.

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
        """Record how far the work is.

        Raises Cancel if the job is being cancelled and StaleAttempt if it was lost.
        """
        await self._backend.progress(percent, message, phase)

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
        """Take room in a limit for one call: `async with ctx.grant("openai") as grant`.

        Keys in braces are filled in from `keys`, then from the payload. If there is no room, it
        waits for up to 90 seconds. If there will be none by then, or the limit is paused or its
        quota spent, it raises LimitExhausted, which defers the attempt. `wait="10m"` waits for up
        to that long, `wait=True` without a bound, both also for a quota; `wait=False` not at all.
        A slot that the handler does not give back is free again after `ttl`, or when the attempt
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
        """Report what the attempt really took of what its claim charged.

        Only the first settlement counts, and returns True. Amounts that are left out stay as they
        were estimated. `cost` is money, for the usage ledger.
        """
        actual = amounts(tokens=tokens, requests=requests, units=units, cost=cost)
        return await self._backend.grants.settle(actual)

    @property
    def http(self) -> httpx2.AsyncClient:
        """A client whose calls take room in the task's limit and settle by themselves.

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
        """Return a client whose calls take room in a limit and settle with what the answer says.

        The limit is the first that the task names, or the given one, or none with `limit=False`.
        Its keys are filled in from `keys`, then from the payload. `tokens`, `requests` and `units`
        are the estimate for each call; `wait` is that of `grant`. `settle` returns what an answer
        really took, such as `{"tokens": 812}`; the default is `usage.total_tokens` of a JSON
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

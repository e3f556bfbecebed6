"""Grants, settlements and calls to providers of one attempt."""

from __future__ import annotations

import logging
import random
import re
import time
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar
from uuid import UUID

import msgspec

from trunkline.db.call import Call
from trunkline.db.calls import flow
from trunkline.errors import (
    DatabaseProblem,
    DatabaseUnreachable,
    LimitExhausted,
    Refusal,
    SchemaError,
)
from trunkline.handler._async.connections import AsyncConnections
from trunkline.handler.amounts import amounts
from trunkline.handler.http.extra import require_httpx2
from trunkline.handler.http.terms import Terms
from trunkline.handler.mistakes import AsyncOnly
from trunkline.handler.patience import Patience, Wait, patience
from trunkline.model import ClaimedJob, Duration, seconds

if TYPE_CHECKING:
    import httpx2

__all__ = ["AsyncGrants", "AsyncLink", "Grant", "GrantRequest"]

T = TypeVar("T")

_KEY: Final = re.compile(r"\{([^{}]+)\}")
# Pauses between attempts to acquire a free slot, which nothing announces.
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0
# The longest pause even if the time of free room is known: an operator may raise the limit.
_LONGEST_WAIT: Final = 10.0

_log = logging.getLogger("trunkline.flow")


class AsyncLink(Protocol):
    """The methods of a worker that grants need."""

    async def run(self, call: Call[T]) -> T:
        """Call the engine."""

    async def pause(self, seconds: float) -> None:
        """Sleep; raise Cancel or StaleAttempt if the attempt must stop."""


class AsyncGrants:
    """The grants and provider calls of one attempt."""

    def __init__(
        self,
        link: AsyncLink,
        job: ClaimedJob,
        limit: str | None,
        connections: AsyncConnections,
    ) -> None:
        self._link = link
        self._job = job
        # Default limit for calls that do not name one.
        self.limit = limit
        self._connections = connections

    def http_client(self, terms: Terms) -> httpx2.AsyncClient:
        """See Context.http_client."""
        require_httpx2()
        # Imported only when a handler calls a provider: httpx2 is an extra and takes time to load.
        from trunkline.handler._async.transport import open_client  # noqa: PLC0415

        return open_client(self, self._connections, terms)

    def grant(
        self,
        limit: str,
        *,
        cost: Mapping[str, int],
        keys: Mapping[str, Any],
        wait: Wait,
        ttl: Duration,
    ) -> GrantRequest:
        """See Context.grant."""
        call = flow.acquire(
            limit,
            cost,
            self.keys(limit, keys),
            job=self._job.job_id,
            attempt=self._job.attempt,
            ttl=seconds(ttl),
            tenant=self._job.tenant,
        )
        return GrantRequest(self._link, limit, call, patience(wait))

    async def settle(self, actual: Mapping[str, Any]) -> bool:
        """See Context.settle."""
        call = flow.settle_job(self._job.job_id, self._job.attempt, actual)
        return await self._link.run(call) == "settled"

    async def observe(
        self, limit: str, observed: Mapping[str, Any], keys: Mapping[str, Any]
    ) -> None:
        """Record what a provider reports about its limit, for all workers."""
        call = flow.observe_limit(
            limit,
            observed,
            self.keys(limit, keys),
            job=self._job.job_id,
            attempt=self._job.attempt,
        )
        try:
            await self._link.run(call)
        except (DatabaseProblem, DatabaseUnreachable, Refusal, SchemaError) as error:
            # This must not fail the job: the provider repeats the report in its next response.
            _log.warning("could not record what a provider reports about %s: %s", limit, error)

    def keys(self, limit: str, overrides: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keys of a limit's name: `overrides`, and the others from the payload."""
        keys = dict(overrides)
        for name in _KEY.findall(limit):
            if name not in keys:
                keys[name] = self._job.tenant if name == "tenant" else self._payload.get(name)
        return keys

    @cached_property
    def _payload(self) -> dict[str, Any]:
        payload: dict[str, Any] = msgspec.json.decode(self._job.payload)
        return payload


class GrantRequest(AsyncOnly, AbstractAsyncContextManager["Grant"]):
    """Waits for room in a limit and returns a Grant; leaving the block settles it.
    If the handler has not reported the actual cost, for example after an error, the estimate stays
    charged.
    """

    _call = "ctx.grant()"

    def __init__(
        self, link: AsyncLink, limit: str, call: Call[flow.GrantAnswer], patience: Patience
    ) -> None:
        self._link = link
        self._limit = limit
        self._acquire = call
        self._patience = patience

    async def __aenter__(self) -> Grant:
        begin = time.monotonic()
        tries = 0
        while not (answer := await self._link.run(self._acquire)).granted:
            waited = time.monotonic() - begin
            if self._patience.ends(answer.reason, answer.free_in, waited):
                raise _exhausted(self._limit, answer)
            await self._link.pause(self._patience.pause(_pause(answer, tries), waited))
            tries += 1
        self._grant = Grant(self._link, answer)
        return self._grant

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._grant.close()


class Grant:
    """Room in a limit for one call, until it is settled or expires, or the attempt ends."""

    def __init__(self, link: AsyncLink, answer: flow.GrantAnswer) -> None:
        assert answer.grant_id is not None  # noqa: S101 - every grant has one
        self._link = link
        self.id: UUID = answer.grant_id
        self.expires_at: datetime | None = answer.expires_at
        self._actual: Mapping[str, Any] | None = None
        self._settled = False

    async def settle(
        self,
        *,
        tokens: int | None = None,
        requests: int | None = None,
        units: int | None = None,
        cost: float | Decimal | None = None,
    ) -> bool:
        """Report the actual cost of the call; amounts that are left out stay as estimated.

        Only the first settlement counts, and returns True.
        """
        return await self._settle(amounts(tokens=tokens, requests=requests, units=units, cost=cost))

    async def settle_answer(self, actual: Mapping[str, Any], received: int) -> bool:
        """Settle with the bytes that arrived as well, which a quota in bytes counts."""
        return await self._settle({**amounts(**actual), "bytes": received})

    async def _settle(self, actual: Mapping[str, Any]) -> bool:
        if self._actual is not None:
            return False
        self._actual = dict(actual)
        return await self._send()

    async def _send(self) -> bool:
        if self._settled:
            return False
        try:
            answer = await self._link.run(flow.settle(self.id, self._actual))
        except (DatabaseProblem, DatabaseUnreachable) as error:
            # The call was made and paid for, so it must not be repeated.
            _log.warning("could not settle a grant; its estimate stays charged: %s", error)
            return False
        self._settled = True
        return answer == "settled"

    async def close(self) -> None:
        """Settle the grant if the handler has not."""
        await self._send()


def _pause(answer: flow.GrantAnswer, tries: int) -> float:
    spread: float = random.uniform(1.0, 1.1)  # noqa: S311 - spreads the handlers
    if answer.reason != "concurrency" and answer.free_in is not None:
        return min(max(answer.free_in, _FIRST_PAUSE), _LONGEST_WAIT) * spread
    growing: float = _FIRST_PAUSE * 2 ** min(tries, 10)
    return min(growing, _LONGEST_PAUSE) * spread


def _exhausted(limit: str, answer: flow.GrantAnswer) -> LimitExhausted:
    until = "" if answer.free_at is None else f" until {answer.free_at:%Y-%m-%d %H:%M:%S %Z}"
    return LimitExhausted(
        f"{limit} has no room ({answer.reason}){until}",
        reason=answer.reason,
        free_at=answer.free_at,
        free_in=answer.free_in,
    )

"""Grants and settlements of one attempt."""

from __future__ import annotations

import logging
import random
import re
import time
from collections.abc import Mapping
from functools import cached_property
from types import TracebackType
from typing import Any, Final, Protocol, TypeVar

import msgspec

from trunkline.client._async.http import AsyncConnections, AsyncHttp
from trunkline.client.flow import AsyncAnswer, Grant, GrantRequest, Patience, Wait, patience
from trunkline.db.call import Call
from trunkline.db.calls import flow
from trunkline.errors import (
    DatabaseProblem,
    DatabaseUnreachable,
    LimitExhausted,
    Refusal,
    SchemaError,
)
from trunkline.model import ClaimedJob, Duration, seconds

__all__ = ["AsyncFlow", "AsyncLink"]

T = TypeVar("T")

_KEY: Final = re.compile(r"\{([^{}]+)\}")
# Between looks for a free slot, which nobody announces.
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0
# Where the time is known; not longer, since a limit can be raised meanwhile.
_LONGEST_WAIT: Final = 10.0

_log = logging.getLogger("trunkline.flow")


class AsyncLink(Protocol):
    """The worker behind a handler."""

    async def run(self, call: Call[T]) -> T:
        """Call the engine."""

    async def pause(self, seconds: float) -> None:
        """Wait; raises Cancel or StaleAttempt where the attempt is to stop."""


class AsyncFlow:
    """What one attempt may take of limits."""

    def __init__(
        self,
        link: AsyncLink,
        job: ClaimedJob,
        limit: str | None,
        connections: AsyncConnections,
    ) -> None:
        self._link = link
        self._job = job
        # Of calls that name none.
        self.limit = limit
        self._connections = connections

    @cached_property
    def http(self) -> AsyncHttp:
        """See Context.http."""
        return AsyncHttp(self, self._connections)

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
        return AsyncGrantRequest(self._link, limit, call, patience(wait))

    def settle(self, actual: Mapping[str, Any]) -> AsyncAnswer[bool]:
        """See Context.settle."""
        return AsyncAnswer(self._settle(actual))

    async def _settle(self, actual: Mapping[str, Any]) -> bool:
        call = flow.settle_job(self._job.job_id, self._job.attempt, actual)
        return await self._link.run(call) == "settled"

    async def observe(
        self, limit: str, observed: Mapping[str, Any], keys: Mapping[str, Any]
    ) -> None:
        """Tell everybody what a provider said of its limit."""
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
            # No reason to fail the job: the provider repeats it in its next response.
            _log.warning("what a provider said of %s could not be told: %s", limit, error)

    def keys(self, limit: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """What fills the keys of a limit's name in: what was given, then the payload."""
        found = dict(given)
        for name in _KEY.findall(limit):
            if name in found:
                continue
            if name == "tenant":
                found[name] = self._job.tenant
            else:
                found[name] = self._payload.get(name)
        return found

    @cached_property
    def _payload(self) -> dict[str, Any]:
        payload: dict[str, Any] = msgspec.json.decode(self._job.payload)
        return payload


class AsyncGrantRequest(GrantRequest):
    """Asks, waits, and asks again."""

    def __init__(
        self, link: AsyncLink, limit: str, call: Call[flow.GrantAnswer], patience: Patience
    ) -> None:
        self._link = link
        self._limit = limit
        self._call = call
        self._patience = patience

    async def __aenter__(self) -> Grant:
        begin = time.monotonic()
        for times in range(1_000_000_000):
            answer = await self._link.run(self._call)
            if answer.granted:
                self._grant = AsyncGrant(self._link, answer)
                break
            waited = time.monotonic() - begin
            if self._patience.ends(answer.reason, answer.free_in, waited):
                raise _exhausted(self._limit, answer)
            await self._link.pause(self._patience.pause(_pause(answer, times), waited))
        return self._grant

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._grant.close()


class AsyncGrant(Grant):
    """One that was given."""

    def __init__(self, link: AsyncLink, answer: flow.GrantAnswer) -> None:
        assert answer.grant_id is not None  # noqa: S101 - every grant has one
        self._link = link
        self.id = answer.grant_id
        self.expires_at = answer.expires_at
        self._actual: Mapping[str, Any] | None = None
        self._settled = False

    def _settle(self, actual: Mapping[str, Any]) -> AsyncAnswer[bool]:
        # Kept from here on: who forgets to await has said it nevertheless.
        first = self._actual is None
        if first:
            self._actual = dict(actual)
        return AsyncAnswer(self._send() if first else self._refuse())

    async def _refuse(self) -> bool:
        return False

    async def _send(self) -> bool:
        if self._settled:
            return False
        try:
            answer = await self._link.run(flow.settle(self.id, self._actual))
        except (DatabaseProblem, DatabaseUnreachable) as error:
            # The call is done and paid for: no reason to do it again.
            _log.warning("a grant could not be settled, its estimate stays charged: %s", error)
            return False
        self._settled = True
        return answer == "settled"

    async def close(self) -> None:
        """Settle, if the handler did not."""
        await self._send()


def _pause(answer: flow.GrantAnswer, times: int) -> float:
    spread: float = random.uniform(1.0, 1.1)  # noqa: S311 - not all of them at once
    if answer.reason != "concurrency" and answer.free_in is not None:
        return min(max(answer.free_in, _FIRST_PAUSE), _LONGEST_WAIT) * spread
    growing: float = _FIRST_PAUSE * 2 ** min(times, 10)
    return min(growing, _LONGEST_PAUSE) * spread


def _exhausted(limit: str, answer: flow.GrantAnswer) -> LimitExhausted:
    until = "" if answer.free_at is None else f" until {answer.free_at:%Y-%m-%d %H:%M:%S %Z}"
    return LimitExhausted(
        f"{limit} has no room ({answer.reason}){until}",
        reason=answer.reason,
        free_at=answer.free_at,
        free_in=answer.free_in,
    )

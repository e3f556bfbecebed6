"""Breakers: limits that are closed for a while after repeated failures."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from trunkline.db.calls import breakers
from trunkline.model import BreakerStatus, Duration, seconds
from trunkline.operate._async.session import AsyncSession

__all__ = ["AsyncBreakers"]


class AsyncBreakers:
    """All breakers; `operator.breakers`."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    async def list(self) -> list[BreakerStatus]:
        """Return every breaker, those that are not closed first."""
        return await self._session.run(breakers.breakers())

    async def set(
        self,
        limit: str,
        parts: Mapping[str, int | float | str | None],
        *,
        reason: str | None = None,
    ) -> bool:
        """Give a limit a breaker or change it, for example `{"breaker_failures": 5}`."""
        return await self._session.run(breakers.set_breaker(limit, parts), reason=reason)

    async def trip(
        self, name: str, *, length: Duration | None = None, reason: str | None = None
    ) -> datetime:
        """Open a breaker by hand; return when its probe is due."""
        span = None if length is None else timedelta(seconds=seconds(length))
        call = breakers.trip_breaker(name, reason, span)
        return await self._session.run(call, reason=reason)

    async def reset(self, name: str, *, reason: str | None = None) -> int:
        """Close a breaker, or those of all keys of a limit; return how many were not closed."""
        return await self._session.run(breakers.reset_breaker(name), reason=reason)

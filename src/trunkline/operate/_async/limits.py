"""Limits: what providers allow, and how much of it is in use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trunkline.db.calls import flow
from trunkline.errors import UnknownLimit
from trunkline.model import BucketStatus, LimitStatus
from trunkline.operate._async.session import AsyncSession

__all__ = ["AsyncLimits"]


class AsyncLimits:
    """All limits; `operator.limits`."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    async def list(self) -> list[LimitStatus]:
        """Return every limit with all of its parts and what is in use over its keys."""
        return await self._session.run(flow.limits())

    async def get(self, limit: str) -> LimitStatus:
        """Return one limit by its name, with the keys in braces."""
        known = {status.name: status for status in await self.list()}
        if limit not in known:
            raise UnknownLimit(
                "unknown limit",
                hint="Create it with operator.limits.set().",
                detail={"limit": limit, "known": [*known]},
            )
        return known[limit]

    async def buckets(self, limit: str) -> Sequence[BucketStatus]:
        """Return the buckets of a limit that were used lately, those with most jobs first."""
        return await self._session.run(flow.buckets(limit))

    async def set(self, limit: str, parts: Mapping[str, Any], *, reason: str | None = None) -> bool:
        """Create a limit or change the given parts; return whether it is new.

        The parts are those of `trunkline.set_limit`, for example `{"requests_per_minute": 60}`.
        A part that is None is no longer limited.
        """
        return await self._session.run(flow.set_limit(limit, parts), reason=reason)

    async def pause(self, limit: str, *, reason: str | None = None) -> None:
        """Start no job that takes from a limit; running jobs continue."""
        await self.get(limit)
        call = flow.set_limit(limit, {}, "maintenance", reason)
        await self._session.run(call, reason=reason)

    async def resume(self, limit: str, *, reason: str | None = None) -> Sequence[str]:
        """Start jobs again and lift pauses of the provider; return the buckets that had one."""
        await self.get(limit)
        await self._session.run(flow.set_limit(limit, {}, "active"), reason=reason)
        paused = await self._session.run(flow.paused(limit))
        for bucket in paused:
            await self._session.run(
                flow.observe_limit(bucket, {"retry_after": 0}, {}), reason=reason
            )
        return paused

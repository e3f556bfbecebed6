"""Duties: the periodic maintenance of the engine, and your own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from trunkline.db.calls import admin, views
from trunkline.model import Duration, DutyRun, DutyStatus, seconds
from trunkline.operate._async.session import AsyncSession

__all__ = ["AsyncDuties"]


class AsyncDuties:
    """All duties; `operator.duties`."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    async def list(self) -> list[DutyStatus]:
        """Return every duty with its last runs and whether it is late."""
        return await self._session.run(views.duties())

    async def run(self, duty: str) -> DutyRun:
        """Run one duty now, whether it is due or not."""
        return await self._session.run(admin.run_duty(duty))

    async def run_due(self) -> Sequence[DutyRun]:
        """Run every duty that is due."""
        return await self._session.run(admin.run_duties())

    async def enable(self, duty: str, *, reason: str | None = None) -> None:
        """Let workers run a duty again."""
        await self._session.run(admin.enable_duty(duty, enabled=True), reason=reason)

    async def disable(self, duty: str, *, reason: str | None = None) -> None:
        """Let workers skip a duty."""
        await self._session.run(admin.enable_duty(duty, enabled=False), reason=reason)

    async def add(
        self,
        duty: str,
        function: str,
        every: Duration,
        *,
        description: str | None = None,
        reason: str | None = None,
    ) -> None:
        """Add a duty that calls a SQL function; only members of trunkline_owner may do so."""
        span = timedelta(seconds=seconds(every))
        call = admin.add_duty(duty, function, span, description)
        await self._session.run(call, reason=reason)

    async def remove(self, duty: str, *, reason: str | None = None) -> None:
        """Remove a duty that was added; only members of trunkline_owner may do so."""
        await self._session.run(admin.remove_duty(duty), reason=reason)

"""Queues: how full they are, pause and resume them."""

from __future__ import annotations

from trunkline.db.calls import admin, views
from trunkline.model import QueueStatus
from trunkline.operate._async.session import AsyncSession

__all__ = ["AsyncQueues"]


class AsyncQueues:
    """All queues; `operator.queues`."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    async def list(self) -> list[QueueStatus]:
        """Return every queue with its jobs by state, each number up to `counted_up_to`."""
        return await self._session.run(views.queues())

    async def pause(
        self, queue: str, *, reason: str | None = None, refuse_enqueue: bool = False
    ) -> None:
        """Stop claims from a queue and, if asked, refuse new jobs; running jobs continue."""
        call = admin.pause_queue(queue, reason, refuse_enqueue=refuse_enqueue)
        await self._session.run(call, reason=reason)

    async def resume(self, queue: str, *, reason: str | None = None) -> bool:
        """Allow claims and new jobs again; return whether the queue was paused."""
        return await self._session.run(admin.resume_queue(queue), reason=reason)

    async def limit(self, queue: str, max_depth: int | None, *, reason: str | None = None) -> None:
        """Limit how many ready jobs a queue may hold; None removes the limit."""
        await self._session.run(admin.limit_queue(queue, max_depth), reason=reason)

    async def age(self, queue: str, *, ageing: bool = True, reason: str | None = None) -> None:
        """Serve the lowest priority first in one of sixteen claims, or no longer."""
        await self._session.run(admin.age_queue(queue, ageing=ageing), reason=reason)

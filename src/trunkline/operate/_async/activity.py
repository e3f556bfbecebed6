"""The activity of jobs, as `trunkline jobs tail` follows it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime

from trunkline.db.calls.recent import recently
from trunkline.db.calls.views import clock
from trunkline.model import ActivityLine, JobState, Recently
from trunkline.operate._async.follower import AsyncFollower
from trunkline.operate._async.session import AsyncSession

__all__ = ["AsyncActivity"]


class AsyncActivity:
    """Recent and new activity of jobs; `operator.activity`."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    async def recent(
        self,
        lines: int = 10,
        *,
        task: str | None = None,
        queue: str | None = None,
        states: Sequence[JobState | str] = (),
    ) -> list[ActivityLine]:
        """Return the last lines of the last day, oldest first."""
        return await self._follower(task, queue, states).history(lines)

    async def follow(
        self,
        lines: int = 0,
        *,
        task: str | None = None,
        queue: str | None = None,
        states: Sequence[JobState | str] = (),
    ) -> AsyncIterator[ActivityLine]:
        """Yield the last lines, then each new one as it happens, without end.

        There is one line when a job is enqueued, when an attempt starts and when it ends. A line of
        a transaction that committed late comes late, with its original time.
        """
        follower = self._follower(task, queue, states)
        for line in await follower.history(lines):
            yield line
        while True:
            await follower.rest()
            for line in await follower.news():
                yield line

    def _follower(
        self, task: str | None, queue: str | None, states: Sequence[JobState | str]
    ) -> AsyncFollower:
        source = _Source(self._session, task, queue)
        return AsyncFollower(source, states=frozenset(map(str, states)))


class _Source:
    def __init__(self, session: AsyncSession, task: str | None, queue: str | None) -> None:
        self._session = session
        self._task = task
        self._queue = queue

    async def now(self) -> datetime:
        return await self._session.run(clock())

    async def look(self, since: datetime, most: int | None) -> Recently:
        call = recently(since, task=self._task, queue=self._queue, most=most)
        return await self._session.run(call)

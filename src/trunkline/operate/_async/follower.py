"""Reports new activity, each line once.

A transaction may commit long after the times that it wrote. So each query overlaps the one before,
and now and then by much more. Reported lines are remembered for as long as a query reaches back.
"""

from __future__ import annotations

import asyncio
import time
from datetime import datetime, timedelta
from typing import Final, Protocol

from trunkline.model import ActivityLine, Recently
from trunkline.operate.activity_lines import LineKey, line_key, line_order, lines_of

__all__ = ["AsyncActivitySource", "AsyncFollower"]

_INTERVAL: Final = 0.5
# After a slow query the pause is longer, so that queries take at most a third of a processor.
_REST_FACTOR: Final = 2
_LONGEST_REST: Final = 5.0
# Each query goes back this far, which is enough for nearly every transaction.
_SHORT: Final = timedelta(seconds=3)
# One query every ten seconds goes back this far, for longer transactions.
_LONG: Final = timedelta(seconds=60)
_LONG_EVERY: Final = timedelta(seconds=10)
_PLENTY: Final = 10_000
_HISTORY: Final = (timedelta(minutes=2), timedelta(hours=1), timedelta(days=1))


class AsyncActivitySource(Protocol):
    """Where a follower reads activity from."""

    async def now(self) -> datetime:
        """Return the engine's time."""

    async def look(self, since: datetime, most: int | None) -> Recently:
        """Return the activity since then, at most so many of each kind."""


class AsyncFollower:
    """Queries repeatedly, and returns lines that are new."""

    def __init__(
        self, source: AsyncActivitySource, *, states: frozenset[str] = frozenset()
    ) -> None:
        self._source = source
        self._states = states
        # Lines that were reported, as far back as a query may reach.
        self._seen: set[LineKey] = set()
        self._last: datetime | None = None
        self._last_long: datetime | None = None
        self._pause = _INTERVAL

    async def history(self, most: int) -> list[ActivityLine]:
        """Return the last lines before now, oldest first; `news` returns what comes later."""
        now = await self._source.now()
        # First the time that later queries overlap with, so that each line is reported once.
        window = await self._source.look(now - _LONG, None)
        self._seen = {line_key(line) for line in lines_of(window, now - _LONG)}
        self._last = self._last_long = window.now
        older: dict[LineKey, ActivityLine] = {}
        for reach in _HISTORY if most else ():
            # Lines of other states are dropped afterwards, so read more of them.
            activity = await self._source.look(now - reach, _PLENTY if self._states else most)
            for line in (*lines_of(window, now - _LONG), *lines_of(activity, now - reach)):
                if line.at < now - _LONG or line_key(line) in self._seen:
                    older[line_key(line)] = line
            if sum(map(self._matches, older.values())) >= most:
                break
        lines = sorted(filter(self._matches, older.values()), key=line_order)
        return lines[-most:] if most else []

    async def news(self) -> list[ActivityLine]:
        """Return the lines since the last query, oldest first."""
        if self._last is None or self._last_long is None:
            await self.history(0)
            return []
        started = time.monotonic()
        # After an outage, a query reaches back to the time of the last one.
        long = self._last - self._last_long >= _LONG_EVERY
        since = self._last - (_LONG if long else _SHORT)
        activity = await self._source.look(since, None)
        self._last = activity.now
        fresh = [line for line in lines_of(activity, since) if line_key(line) not in self._seen]
        self._seen.update(map(line_key, fresh))
        if long:
            self._last_long = activity.now
            # No later query reaches further back than this.
            self._seen = {key for key in self._seen if key[3] >= activity.now - _LONG}
        duration = time.monotonic() - started
        self._pause = min(max(_INTERVAL, duration * _REST_FACTOR), _LONGEST_REST)
        return sorted(filter(self._matches, fresh), key=line_order)

    async def rest(self) -> None:
        """Wait before the next query."""
        await asyncio.sleep(self._pause)

    def _matches(self, line: ActivityLine) -> bool:
        # An acknowledged dead letter was dead before.
        return not self._states or (line.state in self._states and line.event != "acknowledged")

"""Finds out what happened since the last look, each thing once.

A transaction may commit long after the times it wrote, so each look overlaps the one before, and
now and then far more. What was reported is remembered for as long as a look reaches back.
"""

from __future__ import annotations

import asyncio
import time
from datetime import datetime, timedelta
from typing import Final, Protocol

from trunkline.model import ActivityLine, Recently
from trunkline.operate.activity_lines import LineKey, line_key, line_order, lines_of

__all__ = ["AsyncFollower", "AsyncLooks"]

_INTERVAL: Final = 0.5
# Looks that take long are made less often, so that they take a third of a processor at most.
_REST_FACTOR: Final = 2
_LONGEST_REST: Final = 5.0
# Each look goes back this far, which is enough for nearly every transaction.
_SHORT: Final = timedelta(seconds=3)
# Every so often a look goes back this far, for the others.
_LONG: Final = timedelta(seconds=60)
_LONG_EVERY: Final = timedelta(seconds=10)
_PLENTY: Final = 10_000
_HISTORY: Final = (timedelta(minutes=2), timedelta(hours=1), timedelta(days=1))


class AsyncLooks(Protocol):
    """Where a follower gets its knowledge from."""

    async def now(self) -> datetime:
        """Return the engine's time."""

    async def look(self, since: datetime, most: int | None) -> Recently:
        """Return what happened since then, at most so many of each kind."""


class AsyncFollower:
    """Looks again and again, and reports what is new."""

    def __init__(self, looks: AsyncLooks, *, states: frozenset[str] = frozenset()) -> None:
        self._looks = looks
        self._states = states
        # What was reported, as far back as a look may reach.
        self._seen: set[LineKey] = set()
        self._last: datetime | None = None
        self._last_long: datetime | None = None
        self._pause = _INTERVAL

    async def history(self, most: int) -> list[ActivityLine]:
        """Return the last lines before now, oldest first; `news` returns what comes later."""
        now = await self._looks.now()
        # First what later looks reach back to, so that they report it neither twice nor never.
        window = await self._looks.look(now - _LONG, None)
        self._seen = {line_key(line) for line in lines_of(window, now - _LONG)}
        self._last = self._last_long = window.now
        found: dict[LineKey, ActivityLine] = {}
        for reach in _HISTORY if most else ():
            # Lines of other states are dropped afterwards, so it takes more to find enough.
            looked = await self._looks.look(now - reach, _PLENTY if self._states else most)
            for line in (*lines_of(window, now - _LONG), *lines_of(looked, now - reach)):
                if line.at < now - _LONG or line_key(line) in self._seen:
                    found[line_key(line)] = line
            if sum(map(self._wanted, found.values())) >= most:
                break
        lines = sorted(filter(self._wanted, found.values()), key=line_order)
        return lines[-most:] if most else []

    async def news(self) -> list[ActivityLine]:
        """Return what happened since the last look, oldest first."""
        if self._last is None or self._last_long is None:
            await self.history(0)
            return []
        started = time.monotonic()
        # After a time without a server a look reaches back to where the last one was.
        long = self._last - self._last_long >= _LONG_EVERY
        since = self._last - (_LONG if long else _SHORT)
        looked = await self._looks.look(since, None)
        self._last = looked.now
        fresh = [line for line in lines_of(looked, since) if line_key(line) not in self._seen]
        self._seen.update(map(line_key, fresh))
        if long:
            self._last_long = looked.now
            # No later look reaches further back than this.
            self._seen = {key for key in self._seen if key[3] >= looked.now - _LONG}
        took = time.monotonic() - started
        self._pause = min(max(_INTERVAL, took * _REST_FACTOR), _LONGEST_REST)
        return sorted(filter(self._wanted, fresh), key=line_order)

    async def rest(self) -> None:
        """Wait before the next look."""
        await asyncio.sleep(self._pause)

    def _wanted(self, line: ActivityLine) -> bool:
        return not self._states or line.state in self._states

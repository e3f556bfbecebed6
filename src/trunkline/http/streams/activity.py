"""The activity of all jobs for operators: one reader for all streams of a process."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Final

from trunkline.errors import TrunklineError
from trunkline.model import ActivityLine
from trunkline.operate import AsyncOperator

__all__ = ["ActivityReader", "Listening"]

# A client that is slower than this loses lines, and is told how many.
_MOST_WAITING: Final = 1000
_RETRY: Final = 1.0

_log = logging.getLogger("trunkline.http.streams")


class Listening:
    """The lines that one stream has not sent yet."""

    def __init__(self, tenant: str | None) -> None:
        self._tenant = tenant
        self._lines: deque[ActivityLine] = deque()
        self._arrived = asyncio.Event()
        self._missed = 0

    def add(self, line: ActivityLine) -> None:
        """Take a line, unless it belongs to another tenant."""
        if self._tenant is not None and line.tenant != self._tenant:
            return
        if len(self._lines) >= _MOST_WAITING:
            self._lines.popleft()
            self._missed += 1
        self._lines.append(line)
        self._arrived.set()

    async def read(self, timeout: float) -> tuple[int, list[ActivityLine]]:
        """Wait for lines; return how many were lost before them, and the lines."""
        async with asyncio.timeout(timeout):
            await self._arrived.wait()
        self._arrived.clear()
        missed, self._missed = self._missed, 0
        lines = list(self._lines)
        self._lines.clear()
        return missed, lines


class ActivityReader:
    """Reads activity while somebody listens.

    It polls twice a second instead of being notified: a notification for each commit would slow
    every worker down while an operator watches.
    """

    def __init__(self, operator: AsyncOperator) -> None:
        self._operator = operator
        self._listening: set[Listening] = set()
        self._task: asyncio.Task[None] | None = None

    @property
    def reads(self) -> bool:
        """Whether somebody listens."""
        return self._task is not None

    def open(self, tenant: str | None) -> Listening:
        """Listen to new activity, of one tenant or of all."""
        listening = Listening(tenant)
        self._listening.add(listening)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._read(), name="trunkline activity")
        return listening

    def drop(self, listening: Listening) -> None:
        """Stop listening; without a listener nothing is read."""
        self._listening.discard(listening)
        if not self._listening and self._task is not None:
            self._task.cancel()
            self._task = None

    async def close(self) -> None:
        """Stop reading."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _read(self) -> None:
        while True:
            try:
                async for line in self._operator.activity.follow():
                    for listening in self._listening:
                        listening.add(line)
            except TrunklineError as error:
                _log.warning("activity could not be read: %s (%s)", error, error.code)
                await asyncio.sleep(_RETRY)

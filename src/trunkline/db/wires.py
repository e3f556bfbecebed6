"""The wires of one event loop, for its calls."""

from __future__ import annotations

import asyncio
import time
from typing import Final, LiteralString, TypeVar

from trunkline.db.call import Call, nothing
from trunkline.db.connect import open_async
from trunkline.db.patient import CALL_PATIENCE, PING_PATIENCE
from trunkline.db.wire import Wire
from trunkline.errors import ConnectionLost

__all__ = ["Wires"]

T = TypeVar("T")

# A wire used within this time is assumed to be alive.
_FRESH: Final = 1.0
_PING: Final[LiteralString] = "select 1"


class Wires:
    """Opens wires as they are needed, up to a limit, and reuses the most recently used one."""

    def __init__(self, dsn: str, *, size: int, name: str) -> None:
        self._dsn = dsn
        self._name = name
        self._slots = asyncio.Semaphore(size)
        self._free: list[tuple[Wire, float]] = []
        self._closed = False

    async def run(self, call: Call[T], patience: float = CALL_PATIENCE) -> T:
        """Run one call in its own transaction."""
        async with self._slots:
            wire = await self._take()
            try:
                return await wire.run(call, patience)
            finally:
                if self._closed:
                    wire.abandon()
                elif not wire.closed:
                    self._free.append((wire, time.monotonic()))

    def close(self) -> None:
        """Close all wires; those in use are closed after their calls."""
        self._closed = True
        for wire, _ in self._free:
            wire.abandon()
        self._free.clear()

    async def _take(self) -> Wire:
        while self._free:
            wire, used = self._free.pop()
            if wire.closed or (time.monotonic() - used > _FRESH and not await _lives(wire)):
                continue
            return wire
        return Wire(await open_async(self._dsn, name=self._name))


async def _lives(wire: Wire) -> bool:
    """Whether the server answers; the socket alone does not show this."""
    try:
        await wire.run(Call(_PING, (), nothing), PING_PATIENCE)
    except ConnectionLost:
        return False
    return True

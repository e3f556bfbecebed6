"""A connection of one part of a worker, made anew when it breaks."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Final, TypeVar

from trunkline.db.call import Call
from trunkline.db.connect import connect_async
from trunkline.db.patient import AsyncPatientConnection
from trunkline.db.runner import run_async
from trunkline.errors import ConnectionLost

__all__ = ["CALL_TIMEOUT", "LastingConnection"]

T = TypeVar("T")

# Shorter than a client's: a worker has others to go on with, and its jobs are waiting.
CALL_TIMEOUT: Final = 8.0


class LastingConnection:
    """Connects when it is used; after an error the next use connects again."""

    def __init__(self, dsn: str, *, name: str) -> None:
        self._dsn = dsn
        self._name = name
        self._stack = AsyncExitStack()
        self._connection: AsyncPatientConnection | None = None

    async def open(self) -> AsyncPatientConnection:
        """The connection, made if there is none."""
        if self._connection is None or self._connection.closed:
            await self.close()
            self._connection = await self._stack.enter_async_context(
                connect_async(self._dsn, name=self._name)
            )
        return self._connection

    async def run(self, call: Call[T], *, patience: float = CALL_TIMEOUT) -> T:
        """Run a call; raises ConnectionLost when there is no answer in time."""
        connection = await self.open()
        connection.patience = patience
        try:
            return await run_async(connection, call)
        except ConnectionLost:
            await self.close()
            raise

    async def close(self) -> None:
        """Close it; the next use makes a new one."""
        stack, self._stack, self._connection = self._stack, AsyncExitStack(), None
        await stack.aclose()

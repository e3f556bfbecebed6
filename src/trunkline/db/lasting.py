"""A connection of one part of a worker, made anew when it breaks, given up when it is silent."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any, Final, TypeVar

import psycopg

from trunkline.db.call import Call
from trunkline.db.connect import connect_async
from trunkline.db.runner import run_async
from trunkline.errors import ConnectionLost

__all__ = ["CALL_TIMEOUT", "LastingConnection"]

T = TypeVar("T")

# After this long without an answer the peer counts as gone. TCP would wait for minutes, and a
# frozen server or proxy that still acknowledges packets for ever.
CALL_TIMEOUT: Final = 8.0

# What is cancelled on a silent connection ends late (libpq's cancel waits too); nobody waits.
_abandoned: set[asyncio.Task[Any]] = set()


class LastingConnection:
    """Connects when it is used; after an error the next use connects again."""

    def __init__(self, dsn: str, *, name: str) -> None:
        self._dsn = dsn
        self._name = name
        self._stack = AsyncExitStack()
        self._connection: psycopg.AsyncConnection[Any] | None = None

    @property
    def connected(self) -> bool:
        """Whether there is a connection that is not known to be broken."""
        return self._connection is not None and not self._connection.closed

    async def open(self) -> psycopg.AsyncConnection[Any]:
        """The connection, made if there is none."""
        if self._connection is None or self._connection.closed:
            await self.close()
            # A half-open network must not hold a start for longer than any other call.
            async with asyncio.timeout(CALL_TIMEOUT + 2):
                self._connection = await self._stack.enter_async_context(
                    connect_async(self._dsn, name=self._name)
                )
        return self._connection

    async def run(self, call: Call[T], *, patience: float = CALL_TIMEOUT) -> T:
        """Run a call; raises ConnectionLost when there is no answer in time."""
        try:
            connection = await self.open()
        except TimeoutError as error:
            raise ConnectionLost("the server did not answer a new connection in time") from error
        running = asyncio.ensure_future(run_async(connection, call))
        try:
            done, _ = await asyncio.wait({running}, timeout=patience)
        except asyncio.CancelledError:
            self._abandon(running)
            raise
        if not done:
            self._abandon(running)
            raise ConnectionLost(f"no answer from the server within {patience:g} seconds")
        try:
            return running.result()
        except ConnectionLost:
            await self.close()
            raise

    async def close(self) -> None:
        """Close it; the next use makes a new one."""
        stack, self._stack, self._connection = self._stack, AsyncExitStack(), None
        await stack.aclose()

    def _abandon(self, running: asyncio.Task[Any]) -> None:
        stack, self._stack, self._connection = self._stack, AsyncExitStack(), None
        running.cancel()

        async def bury() -> None:
            await asyncio.wait({running})
            await stack.aclose()

        burial = asyncio.ensure_future(bury())
        _abandoned.add(burial)
        burial.add_done_callback(_abandoned.discard)

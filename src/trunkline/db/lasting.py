"""A connection of one part of a worker, which connects again after it breaks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Final, LiteralString, TypeVar

from trunkline.db.call import Call, nothing
from trunkline.db.connect import connect_async
from trunkline.db.wire import Wire

__all__ = ["CALL_TIMEOUT", "LastingConnection"]

T = TypeVar("T")

# Shorter than a client's deadline: a worker's jobs are waiting, and it repeats its calls.
CALL_TIMEOUT: Final = 8.0

_LIMIT: Final[LiteralString] = "select set_config('statement_timeout', %s, false)"


class LastingConnection:
    """Connects at its first use; after an error, the next use connects again."""

    def __init__(
        self, dsn: str, *, name: str, on_notice: Callable[[str, str], None] | None = None
    ) -> None:
        self._dsn = dsn
        self._name = name
        self._on_notice = on_notice
        self._stack = AsyncExitStack()
        self._wire: Wire | None = None
        self._pooled = False
        self._limit = 0.0

    @property
    def connected(self) -> bool:
        """Whether there is a connection that is not known to be broken."""
        return self._wire is not None and not self._wire.closed

    async def is_pooled(self) -> bool:
        """Connect, and return whether there is a pooler, so that the session is shared."""
        if not self.connected:
            await self._open()
        return self._pooled

    async def run(self, call: Call[T], *, patience: float = CALL_TIMEOUT) -> T:
        """Run a call; raise ConnectionLost if there is no answer in time."""
        wire = self._wire
        if wire is None or wire.closed:
            wire = await self._open()
        if patience != self._limit and not self._pooled:
            # The server must cancel the statement before we close the connection: a statement that
            # waits for a lock would not notice that, and a claim would take jobs for nobody.
            await wire.run(Call(_LIMIT, (f"{int(900 * patience)}",), nothing), patience)
            self._limit = patience
        return await wire.run(call, patience)

    async def close(self) -> None:
        """Close the connection; the next use opens a new one."""
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.abandon()
        stack, self._stack = self._stack, AsyncExitStack()
        await stack.aclose()

    async def _open(self) -> Wire:
        await self.close()
        connection = await self._stack.enter_async_context(
            connect_async(self._dsn, name=self._name)
        )
        # `connect` disables prepared statements if it detects a pooler.
        self._pooled = connection.prepare_threshold is None
        self._limit = 0.0
        self._wire = Wire(connection, self._on_notice)
        return self._wire

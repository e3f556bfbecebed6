"""Notifications of the engine, on a connection that must not lead through a transaction pooler."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from typing import Final

from trunkline.db.call import Call, nothing
from trunkline.db.lasting import LastingConnection
from trunkline.db.patient import PING_PATIENCE
from trunkline.errors import ConnectionLost

__all__ = ["CANCEL", "WAKE", "Listener"]

# Payload: the name of a queue that has new work for who sleeps.
WAKE: Final = "trunkline_wake"
# Payload: the id of a running job that is to be cancelled.
CANCEL: Final = "trunkline_cancel"

_TEST_WAIT: Final = 2.0


class Listener:
    """Hears the channels of the engine and passes on (channel, payload) as they arrive."""

    def __init__(self, dsn: str, on_notice: Callable[[str, str], None]) -> None:
        self._dsn = dsn
        self._connection = LastingConnection(
            dsn, name="trunkline listener", on_notice=self._on_notice
        )
        self._pass_on = on_notice
        self._test = f"trunkline_test_{uuid.uuid4().hex[:16]}"
        self._echo = asyncio.Event()

    @property
    def connected(self) -> bool:
        """Whether the connection is not known to be broken."""
        return self._connection.connected

    async def listen(self) -> bool:
        """Subscribe; False where nothing arrives, as behind a pooler in transaction mode."""
        # Never LISTEN there: notifications for a shared server connection made PgBouncer 1.18 give
        # clients the answers of others.
        if await self._connection.is_pooled():
            return False
        for channel in (WAKE, CANCEL, self._test):
            if not self.connected:
                # A new connection would know nothing of the channels before this one.
                raise ConnectionLost("the listening connection broke")
            await _run(self._connection, f"listen {channel}")
        # Such a pooler accepts LISTEN and then says nothing for ever; so ask for an echo. From
        # another connection: one's own word comes back with its answer, through any pooler.
        other = LastingConnection(self._dsn, name="trunkline listener")
        try:
            heard = await self._echoes(other, _TEST_WAIT)
        finally:
            await other.close()
        if not heard and not self.connected:
            raise ConnectionLost("the listening connection broke")
        return heard

    async def check(self) -> None:
        """Ask for another echo: a frozen server is silent like an idle one."""
        if not self.connected or not await self._echoes(self._connection, PING_PATIENCE):
            await self.close()
            raise ConnectionLost("the listening connection is silent")

    async def close(self) -> None:
        """Hear no more."""
        await self._connection.close()

    async def _echoes(self, sender: LastingConnection, wait: float) -> bool:
        self._echo.clear()
        await _run(sender, f"notify {self._test}")
        try:
            async with asyncio.timeout(wait):
                await self._echo.wait()
        except TimeoutError:
            return False
        return True

    def _on_notice(self, channel: str, payload: str) -> None:
        if channel == self._test:
            self._echo.set()
        else:
            self._pass_on(channel, payload)


async def _run(connection: LastingConnection, statement: str) -> None:
    # Channels cannot be parameters; these are constants and hexadecimal digits.
    call: Call[None] = Call(statement, (), nothing)  # type: ignore[arg-type, unused-ignore]
    await connection.run(call, patience=PING_PATIENCE)

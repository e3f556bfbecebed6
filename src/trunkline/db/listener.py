"""Notifications of the engine, on a connection without a pooler in transaction mode."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Sequence
from typing import Final

from trunkline.db.call import Call, nothing
from trunkline.db.lasting import LastingConnection
from trunkline.db.patient import PING_PATIENCE
from trunkline.errors import ConnectionLost

__all__ = ["CANCEL", "DUTIES", "LIVE", "WAKE", "Listener"]

# Payload: the name of a queue with new jobs for sleeping workers.
WAKE: Final = "trunkline_wake"
# Payload: the id of a running job for which a cancel was requested.
CANCEL: Final = "trunkline_cancel"
# Payload: the name of a duty that has work now.
DUTIES: Final = "trunkline_duties"
# Payload: the ids of followed jobs and workflows that have changed, separated by spaces.
LIVE: Final = "trunkline_live"

_TEST_WAIT: Final = 2.0


class Listener:
    """Listens on the channels of the engine and forwards each (channel, payload) at once."""

    def __init__(
        self,
        dsn: str,
        on_notice: Callable[[str, str], None],
        *,
        channels: Sequence[str] = (WAKE, CANCEL, DUTIES),
    ) -> None:
        self._dsn = dsn
        self._channels = channels
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
        """Subscribe; return False if nothing arrives, as behind a pooler in transaction mode."""
        # Never LISTEN behind a pooler: because of notifications on a shared server connection,
        # PgBouncer 1.18 returned answers to the wrong clients.
        if await self._connection.is_pooled():
            return False
        for channel in (*self._channels, self._test):
            if not self.connected:
                # A new connection would not be subscribed to the channels before this one.
                raise ConnectionLost("the listening connection broke")
            await _run(self._connection, f"listen {channel}")
        # A pooler may accept LISTEN and never deliver anything, so test it with a notification. It
        # is sent from another connection: through any pooler, a session receives its own ones.
        sender = LastingConnection(self._dsn, name="trunkline listener")
        try:
            delivered = await self._echoes(sender, _TEST_WAIT)
        finally:
            await sender.close()
        if not delivered and not self.connected:
            raise ConnectionLost("the listening connection broke")
        return delivered

    async def check(self) -> None:
        """Test again with a notification: a frozen server is as silent as an idle one."""
        if not self.connected or not await self._echoes(self._connection, PING_PATIENCE):
            await self.close()
            raise ConnectionLost("the listening connection is silent")

    async def close(self) -> None:
        """Close the connection."""
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

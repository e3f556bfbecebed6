"""Notifications of the engine, on a connection that must not lead through a transaction pooler."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Final

from psycopg import sql

from trunkline.db.lasting import LastingConnection
from trunkline.db.patient import PING_PATIENCE
from trunkline.db.translate import translated

__all__ = ["CANCEL", "WAKE", "Listener"]

# Payload: the name of a queue that has new work for who sleeps.
WAKE: Final = "trunkline_wake"
# Payload: the id of a running job that is to be cancelled.
CANCEL: Final = "trunkline_cancel"

_TEST_WAIT: Final = 2.0


class Listener:
    """Hears the channels of the engine."""

    def __init__(self, dsn: str) -> None:
        self._connection = LastingConnection(dsn, name="trunkline listener")
        self._test = f"trunkline_test_{uuid.uuid4().hex[:16]}"

    async def listen(self) -> bool:
        """Subscribe; False where nothing arrives, as behind a pooler in transaction mode."""
        connection = await self._connection.open()
        connection.patience = PING_PATIENCE
        with translated():
            for channel in (WAKE, CANCEL, self._test):
                await connection.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
            # Such a pooler accepts LISTEN and then says nothing for ever; so ask for an echo.
            await connection.execute(sql.SQL("notify {}").format(sql.Identifier(self._test)))
        return any(channel == self._test for channel, _ in await self.hear(_TEST_WAIT))

    async def hear(self, wait: float) -> Sequence[tuple[str, str]]:
        """What arrives within that time, as (channel, payload); returns early with the first."""
        connection = await self._connection.open()
        # Silence is what is waited for here.
        connection.patience = None
        with translated():
            return [
                (notice.channel, notice.payload)
                async for notice in connection.notifies(timeout=wait, stop_after=1)
            ]

    async def check(self) -> None:
        """Ask the server for a sign of life: a frozen one is silent like an idle one."""
        connection = await self._connection.open()
        connection.patience = PING_PATIENCE
        with translated():
            await connection.execute("select 1")

    async def close(self) -> None:
        """Hear no more."""
        await self._connection.close()

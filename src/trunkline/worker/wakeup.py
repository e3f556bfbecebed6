"""Hears of new work and of cancellations as they happen; polling remains the truth."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final
from uuid import UUID

from trunkline.db.listener import CANCEL, WAKE, Listener
from trunkline.worker.part import Part

__all__ = ["Wakeup"]

# How often the connection is looked at, and how often it is asked for a sign of life.
_LOOK: Final = 0.5
_CHECK_EVERY: Final = 15.0
# Behind a pooler nothing will arrive; a direct connection may come with the next fail-over.
_TRY_AGAIN: Final = 60.0


class Wakeup(Part):
    """LISTEN on a connection of its own."""

    name = "wakeup"

    def __init__(
        self,
        dsn: str,
        *,
        queues: tuple[str, ...] | None,
        on_work: Callable[[], None],
        on_cancel: Callable[[UUID], None],
    ) -> None:
        super().__init__()
        self._listener = Listener(dsn, self._act)
        self._queues = None if queues is None else set(queues)
        self._on_work = on_work
        self._on_cancel = on_cancel
        self._warned = False
        self._checked_at = 0.0
        self.hears = False

    async def close(self) -> None:
        """Hear no more."""
        self.hears = False
        await self._listener.close()

    async def turn(self) -> None:
        """Subscribe if need be; what is heard meanwhile is acted on at once."""
        if not self.hears:
            await self._subscribe()
            return
        await self.pause(_LOOK)
        if self.stopping.is_set():
            return
        try:
            if not self._listener.connected or (time.monotonic() - self._checked_at > _CHECK_EVERY):
                await self._listener.check()
                self._checked_at = time.monotonic()
        except Exception:
            self.hears = False
            await self._listener.close()
            raise

    async def _subscribe(self) -> None:
        self.hears = bool(await self.unless_stopping(self._listener.listen()))
        self._checked_at = time.monotonic()
        if self.stopping.is_set():
            return
        if self.hears:
            # What was enqueued while nobody listened.
            self._on_work()
            return
        if not self._warned:
            self._warned = True
            self.log.warning(
                "no notification arrives over this connection string, so new work is found by"
                " looking every second; give a direct one as --listen-dsn if there is a pooler"
                " in transaction mode in between"
            )
        await self._listener.close()
        await self.pause(_TRY_AGAIN)

    def _act(self, channel: str, payload: str) -> None:
        if channel == WAKE and (self._queues is None or payload in self._queues):
            self._on_work()
        elif channel == CANCEL:
            try:
                self._on_cancel(UUID(payload))
            except ValueError:
                # Anybody may send on a channel.
                self.log.debug("not a job: %r", payload)

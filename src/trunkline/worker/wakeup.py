"""Receives notifications of new jobs, cancellations and duties. Polling finds what they miss."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final
from uuid import UUID

from trunkline.db.listener import CANCEL, DUTIES, WAKE, Listener
from trunkline.worker.part import Part

__all__ = ["Wakeup"]

# How often the connection's state is checked, and how often an echo test is sent.
_POLL_EVERY: Final = 0.5
_CHECK_EVERY: Final = 15.0
# Behind a pooler no notification arrives, but a fail-over may change that: try again this often.
_TRY_AGAIN: Final = 60.0


class Wakeup(Part):
    """LISTEN on a separate connection."""

    name = "wakeup"

    def __init__(
        self,
        dsn: str,
        *,
        queues: tuple[str, ...] | None,
        on_work: Callable[[], None],
        on_cancel: Callable[[UUID], None],
        on_duty: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__()
        self._listener = Listener(dsn, self._act)
        self._queues = None if queues is None else set(queues)
        self._on_work = on_work
        self._on_cancel = on_cancel
        self._on_duty = on_duty
        self._warned = False
        self._checked_at = 0.0
        self.hears = False

    async def close(self) -> None:
        """Close the connection."""
        self.hears = False
        await self._listener.close()

    async def turn(self) -> None:
        """Subscribe if necessary, then wait. Notifications call `_act` at once."""
        if not self.hears:
            await self._subscribe()
            return
        await self.pause(_POLL_EVERY)
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
            # Jobs may have been enqueued before the subscription.
            self._on_work()
            return
        if not self._warned:
            self._warned = True
            self.log.warning(
                "no notifications arrive over this connection string, so the worker polls for jobs"
                " every second; if it leads through a pooler in transaction mode, pass a direct"
                " connection string as --listen-dsn"
            )
        await self._listener.close()
        await self.pause(_TRY_AGAIN)

    def _act(self, channel: str, payload: str) -> None:
        if channel == WAKE and (self._queues is None or payload in self._queues):
            self._on_work()
        elif channel == DUTIES and self._on_duty is not None:
            self._on_duty(payload)
        elif channel == CANCEL:
            try:
                self._on_cancel(UUID(payload))
            except ValueError:
                # Every role can send on a channel.
                self.log.debug("ignored a notification that is not a job id: %r", payload)

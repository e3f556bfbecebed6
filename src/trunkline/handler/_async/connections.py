"""Connections to providers that the handlers of a worker share."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpcore2

__all__ = ["AsyncConnections"]


class AsyncConnections:
    """Connections that are opened at first use and kept for the next call of any job."""

    def __init__(self) -> None:
        self._pool: httpcore2.AsyncConnectionPool | None = None
        self._lock = threading.Lock()

    def pool(self) -> httpcore2.AsyncConnectionPool:
        """Return the pool; handlers in threads share one."""
        with self._lock:
            if self._pool is None:
                # Imported when a handler first calls a provider: httpx2 is an extra, slow to load.
                from trunkline.handler._async.network import open_pool  # noqa: PLC0415

                self._pool = open_pool()
            return self._pool

    async def close(self) -> None:
        """Close all connections."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            await pool.aclose()

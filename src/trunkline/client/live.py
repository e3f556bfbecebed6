"""Followers for both kinds of callers: of event loops, and of threads."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TYPE_CHECKING, Any
from uuid import UUID

from trunkline.client.hub import Hub, Kind, Watch
from trunkline.db.pool import AsyncPool

if TYPE_CHECKING:
    from trunkline.client._async.connection import AsyncClient
    from trunkline.client._sync.connection import SyncClient

__all__ = ["AsyncLive", "SyncLive"]


class AsyncLive:
    """The followers of an application, by event loop."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._hubs: dict[asyncio.AbstractEventLoop, Hub] = {}

    def open(self, kind: Kind, known: UUID) -> Watch:
        """Follow a job or workflow."""
        loop = asyncio.get_running_loop()
        hub = self._hubs.get(loop)
        if hub is None:
            for ended in [old for old in self._hubs if old.is_closed()]:
                del self._hubs[ended]
            hub = self._hubs[loop] = Hub(self._client.run, self._client.listen_dsn)
        return hub.open(kind, known)

    @property
    def hears(self) -> bool:
        """Whether notifications arrive in this event loop."""
        hub = self._hubs.get(asyncio.get_running_loop())
        return hub is not None and hub.hears

    async def close(self) -> None:
        """Close the connection of this event loop."""
        hub = self._hubs.pop(asyncio.get_running_loop(), None)
        if hub is not None:
            await hub.close()

    def abandon(self) -> None:
        """End without an event loop that could close the connections properly."""
        for hub in self._hubs.values():
            hub.abandon()
        self._hubs.clear()


class SyncLive:
    """The same for threads: the hub runs in a thread with its own event loop and connections."""

    def __init__(self, client: SyncClient) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._home: _Home | None = None

    def open(self, kind: Kind, known: UUID) -> SyncWatch:
        """Follow a job or workflow."""
        with self._lock:
            home = self._home
            # A fork copies the object, but not the thread.
            if home is None or home.process != os.getpid():
                home = self._home = _Home(self._client.server_dsn(), self._client.listen_dsn())
        return SyncWatch(home, kind, known)

    @property
    def hears(self) -> bool:
        """Whether notifications arrive."""
        home = self._home
        return home is not None and home.hub.hears

    def close(self) -> None:
        """End the thread and close its connections."""
        with self._lock:
            home, self._home = self._home, None
        if home is not None and home.process == os.getpid():
            home.close()

    def abandon(self) -> None:
        """End the thread; the same as `close`."""
        self.close()


class SyncWatch:
    """One follower in a thread."""

    def __init__(self, home: _Home, kind: Kind, known: UUID) -> None:
        self._home = home
        self._watch: Watch = home.call(_opened(home.hub, kind, known)).result()

    def read(self, attempt: int = 0, number: int = 0, timeout: float | None = None) -> Any:
        """See Watch.read."""
        reading = self._home.call(self._watch.read(attempt, number, timeout))
        try:
            return reading.result()
        except FutureTimeoutError as error:
            raise TimeoutError from error
        finally:
            # After KeyboardInterrupt, nobody waits for it.
            reading.cancel()

    def close(self) -> None:
        """Stop following."""
        self._home.later(self._watch.close)


class _Home:
    """The thread."""

    def __init__(self, dsn: str, listen_dsn: str) -> None:
        self.process = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._pool = AsyncPool(dsn, size=1, name="trunkline live")

        async def listen() -> str:
            return listen_dsn

        self.hub = Hub(self._pool.run, listen)
        self._thread = threading.Thread(target=self._main, name="trunkline live", daemon=True)
        self._thread.start()

    def call(self, work: Any) -> Any:
        """Run a coroutine in the thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def later(self, function: Callable[[], None]) -> None:
        """Run a function in the thread, unless it has ended."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function)

    def close(self) -> None:
        """Close the connections and end the thread."""

        async def end() -> None:
            await self.hub.close()
            await self._pool.close()

        self.call(end()).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _main(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.close()


async def _opened(hub: Hub, kind: Kind, known: UUID) -> Watch:
    return hub.open(kind, known)

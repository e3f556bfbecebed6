"""What the requests of one server share."""

from __future__ import annotations

import asyncio
from typing import Final

from trunkline.artifacts import AsyncStore, Store, open_store
from trunkline.db.pool import AsyncPool
from trunkline.http.authentication import Authenticator
from trunkline.http.caller import Caller, CallerSession
from trunkline.http.metrics import Metrics
from trunkline.http.server_health import ServerHealth
from trunkline.http.settings import ApiSettings
from trunkline.http.streams.registry import Streams

__all__ = ["Resources"]

SERVER: Final = Caller("key", "trunkline api", role="trunkline_reader")


class Resources:
    """Settings, connections, the store of artifacts, and who is believed."""

    def __init__(
        self,
        settings: ApiSettings,
        dsn: str | None,
        *,
        embedded: bool | None = None,
        store: Store | None = None,
    ) -> None:
        self.settings = settings
        self.dsn = dsn
        self.pool = AsyncPool(
            dsn, embedded=embedded, size=settings.connections, name="trunkline api"
        )
        self.store = AsyncStore(open_store if store is None else store)
        self.authenticator = Authenticator(settings, self.pool)
        # Set when the server stops; streams end then.
        self.stopping = asyncio.Event()
        # Calls of the server for itself, for which no caller has signed in.
        self.server = CallerSession(SERVER, self.pool, self.store)
        self.health = ServerHealth(self.server)
        self.streams = Streams(settings, self.pool, self.server)
        self.metrics = Metrics(self.server)

    async def close(self) -> None:
        """Close the connections and the store."""
        await self.streams.close()
        await self.store.close()
        await self.pool.close()

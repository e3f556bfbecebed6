"""The streams of one process: how many there are, and what feeds them."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import Final

from trunkline.client.hub import Hub
from trunkline.db.pool import AsyncPool
from trunkline.errors import TooManyStreams, TooManyTenantStreams
from trunkline.http.caller import Caller, CallerSession
from trunkline.http.settings import ApiSettings
from trunkline.http.streams.activity import ActivityReader
from trunkline.http.streams.response import EventStream
from trunkline.http.streams.settings import StreamSettings
from trunkline.http.streams.tickets import Tickets

__all__ = ["Streams"]

_RETRY_AFTER: Final = {"Retry-After": "5"}


class Streams:
    """One listening connection and one reader of states for all streams."""

    def __init__(self, settings: ApiSettings, pool: AsyncPool, server: CallerSession) -> None:
        self.settings = StreamSettings.of(settings)
        self.tickets = Tickets(self.settings)
        self._pool = pool
        self._server = server
        self._tenants: Counter[str] = Counter()
        self.count = 0
        self.open: set[EventStream] = set()

    @cached_property
    def hub(self) -> Hub:
        """What follows jobs and workflows."""
        return Hub(self._server.run, self._listen_dsn)

    @cached_property
    def activity(self) -> ActivityReader:
        """What follows the activity of all jobs."""
        return ActivityReader(self._server.operator)

    def enter(self, caller: Caller, tenant: str | None) -> str:
        """Count a stream of a tenant's object, or refuse it; return what `leave` takes."""
        owner = f"{caller.kind} {caller.name}" if tenant is None else f"tenant {tenant}"
        if self.count >= self.settings.most:
            raise TooManyStreams(
                f"This server has {self.settings.most} open streams.", headers=_RETRY_AFTER
            )
        if self._tenants[owner] >= self.settings.most_per_tenant:
            raise TooManyTenantStreams(
                f"You have {self.settings.most_per_tenant} open streams.", headers=_RETRY_AFTER
            )
        self.count += 1
        self._tenants[owner] += 1
        return owner

    def leave(self, owner: str, stream: EventStream) -> None:
        """Count a stream that has ended."""
        self.open.discard(stream)
        self.count -= 1
        self._tenants[owner] -= 1
        if not self._tenants[owner]:
            del self._tenants[owner]

    def stop(self) -> None:
        """End all streams, because the server ends. Clients come back to another one."""
        for stream in list(self.open):
            stream.stop()

    async def close(self) -> None:
        """Close the listening connection and the readers."""
        if "hub" in self.__dict__:
            await self.hub.close()
        if "activity" in self.__dict__:
            await self.activity.close()

    async def _listen_dsn(self) -> str:
        return self.settings.listen_dsn or await self._pool.server_dsn()

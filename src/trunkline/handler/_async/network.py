"""Network streams that count bytes and enforce the deadline of their exchange."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from typing import Any, Final

import httpcore2
import httpx2

from trunkline.handler.http.dial import dial_async
from trunkline.handler.http.exchange import of_timeout

__all__ = ["open_pool"]

# Many servers close connections that are idle for longer, and a request sent just then would fail.
_KEPT: Final = 15.0
_MOST_KEPT: Final = 20


def open_pool() -> httpcore2.AsyncConnectionPool:
    """Return a pool for all providers; limits, not the pool, bound concurrent calls."""
    return httpcore2.AsyncConnectionPool(
        ssl_context=httpx2.create_ssl_context(),
        max_connections=None,
        max_keepalive_connections=_MOST_KEPT,
        keepalive_expiry=_KEPT,
        network_backend=AsyncNetwork(),
    )


class AsyncNetwork(httpcore2.AsyncNetworkBackend):
    """Opens streams that know their exchange."""

    def __init__(self) -> None:
        self._backend = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect."""
        exchange = of_timeout(timeout)
        exchange.connected = True
        stream = await dial_async(
            self._backend,
            host,
            port,
            exchange,
            local_address=local_address,
            socket_options=socket_options,
        )
        return AsyncWire(stream)


class AsyncWire(httpcore2.AsyncNetworkStream):
    """One connection. It counts above TLS, where providers bill headers and body."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream) -> None:
        self._stream = stream

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read the data that has arrived; b"" at the end."""
        exchange = of_timeout(timeout)
        exchange.check_size()
        data = await self._stream.read(max_bytes, exchange.left("read"))
        exchange.received += len(data)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send all the data."""
        await self._stream.write(buffer, of_timeout(timeout).left("write"))

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Encrypt the connection and verify the server."""
        remaining = of_timeout(timeout).left("connect")
        return AsyncWire(await self._stream.start_tls(ssl_context, server_hostname, remaining))

    def get_extra_info(self, info: str) -> Any:
        """Return a property of the connection that the pool needs."""
        return self._stream.get_extra_info(info)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._stream.aclose()

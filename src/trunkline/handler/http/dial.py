"""Opens connections within the time of an exchange, including name resolution."""

from __future__ import annotations

import socket
import threading
from queue import Empty, SimpleQueue
from typing import Any

import httpcore2

from trunkline.handler.http.exchange import Exchange

__all__ = ["dial", "dial_async"]


async def dial_async(
    backend: httpcore2.AsyncNetworkBackend, host: str, port: int, exchange: Exchange, **options: Any
) -> httpcore2.AsyncNetworkStream:
    """Connect. The event loop can interrupt name resolution."""
    return await backend.connect_tcp(host, port, timeout=exchange.left("connect"), **options)


def dial(
    backend: httpcore2.NetworkBackend, host: str, port: int, exchange: Exchange, **options: Any
) -> httpcore2.NetworkStream:
    """Connect to the first address that accepts. Each gets a share of the time."""
    addresses = _resolve(host, port, exchange)
    problem: Exception = httpcore2.ConnectError(f"{host} has no address")
    for index, address in enumerate(addresses):
        remaining = exchange.left("connect")
        share = None if remaining is None else remaining / (len(addresses) - index)
        try:
            return backend.connect_tcp(address, port, timeout=share, **options)
        except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
            problem = error
    raise problem


def _resolve(host: str, port: int, exchange: Exchange) -> list[str]:
    """Resolve a name in a thread, because the system's resolver takes no timeout."""
    answers: SimpleQueue[list[str] | Exception] = SimpleQueue()

    def resolve() -> None:
        try:
            entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            answers.put(list(dict.fromkeys(str(address[0]) for *_, address in entries)))
        except Exception as error:  # noqa: BLE001 - the waiting thread raises it
            answers.put(error)

    threading.Thread(target=resolve, daemon=True).start()
    try:
        addresses = answers.get(timeout=exchange.left("connect"))
    except Empty:
        raise httpcore2.ConnectTimeout(f"{host} was not resolved in time") from None
    if isinstance(addresses, Exception):
        raise httpcore2.ConnectError(str(addresses)) from addresses
    return addresses

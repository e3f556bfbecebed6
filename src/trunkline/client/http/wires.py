"""Connections to providers: one for event loops, one for threads, with the same face.

Every step has what is left of the call's total time, and raises TimeoutError after it.
"""

from __future__ import annotations

import asyncio
import select
import socket
import ssl
import threading
from contextlib import suppress
from functools import cache
from queue import Empty, SimpleQueue
from typing import Any, Final

from trunkline.client.http.deadline import Deadline
from trunkline.client.http.outgoing import Target

__all__ = ["AsyncWire", "SyncWire"]

_AT_ONCE: Final = 65_536


@cache
def _tls() -> ssl.SSLContext:
    # Once: reading the certificates of the system takes tens of milliseconds.
    return ssl.create_default_context()


def _is_quiet(wire: Any) -> bool:
    """Whether nothing waits to be read: an idle connection says only that it ends."""
    poll = select.poll()
    poll.register(wire.fileno(), select.POLLIN)
    return not poll.poll(0)


class AsyncWire:
    """In an event loop."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def open(cls, target: Target, deadline: Deadline) -> AsyncWire:
        """Connect."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(deadline.left()):
            addresses = await loop.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
        problem: OSError | None = None
        for place, (*_, address) in enumerate(addresses):
            try:
                # A silent first address leaves time for the others; uvloop knows no happy eyeballs.
                async with asyncio.timeout(deadline.left() / (len(addresses) - place)):
                    return cls(
                        *await asyncio.open_connection(
                            *address[:2],
                            ssl=_tls() if target.secure else None,
                            server_hostname=target.host if target.secure else None,
                        )
                    )
            except ssl.SSLError:
                # Somebody is there, and not who was wanted.
                raise
            except OSError as error:
                problem = error
        raise problem or OSError(f"{target.host} has no address")

    async def send(self, data: bytes, deadline: Deadline) -> None:
        """Send all of it."""
        async with asyncio.timeout(deadline.left()):
            self._writer.write(data)
            await self._writer.drain()

    async def receive(self, deadline: Deadline) -> bytes:
        """What has arrived; b"" at the end."""
        async with asyncio.timeout(deadline.left()):
            return await self._reader.read(_AT_ONCE)

    def is_usable(self) -> bool:
        """Whether another request may be sent."""
        if self._loop is not asyncio.get_running_loop() or self._writer.is_closing():
            return False
        found = self._writer.get_extra_info("socket")
        return not self._reader.at_eof() and found is not None and _is_quiet(found)

    def close(self) -> None:
        """Let go; waits for nobody."""
        with suppress(RuntimeError, OSError):
            # The loop may have ended before.
            self._writer.transport.abort()


class SyncWire:
    """In a thread."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    @classmethod
    def open(cls, target: Target, deadline: Deadline) -> SyncWire:
        """Connect."""
        connection = _connect(target, deadline)
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if target.secure:
                connection.settimeout(deadline.left())
                connection = _tls().wrap_socket(connection, server_hostname=target.host)
        except BaseException:
            connection.close()
            raise
        return cls(connection)

    def send(self, data: bytes, deadline: Deadline) -> None:
        """Send all of it."""
        self._socket.settimeout(deadline.left())
        self._socket.sendall(data)

    def receive(self, deadline: Deadline) -> bytes:
        """What has arrived; b"" at the end."""
        self._socket.settimeout(deadline.left())
        return self._socket.recv(_AT_ONCE)

    def is_usable(self) -> bool:
        """Whether another request may be sent."""
        return _is_quiet(self._socket)

    def close(self) -> None:
        """Let go."""
        with suppress(OSError):
            self._socket.close()


def _connect(target: Target, deadline: Deadline) -> socket.socket:
    addresses = _resolve(target, deadline)
    problem: OSError | None = None
    for place, (family, kind, protocol, _, address) in enumerate(addresses):
        connection = socket.socket(family, kind, protocol)
        try:
            # A silent first address leaves time for the others.
            connection.settimeout(deadline.left() / (len(addresses) - place))
            connection.connect(address)
        except OSError as error:
            connection.close()
            problem = error
        else:
            return connection
    raise problem or OSError(f"{target.host} has no address")


def _resolve(target: Target, deadline: Deadline) -> list[Any]:
    """Look the name up in a thread: the resolver of the system cannot be given a bound."""
    answers: SimpleQueue[Any] = SimpleQueue()

    def look_up() -> None:
        try:
            answers.put(socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM))
        except BaseException as error:  # noqa: BLE001 - whoever waits for it raises it
            answers.put(error)

    threading.Thread(target=look_up, daemon=True).start()
    try:
        found = answers.get(timeout=deadline.left())
    except Empty:
        raise TimeoutError from None
    if isinstance(found, BaseException):
        raise found
    return list(found)

"""Messages between a worker and the processes of its handlers: a length, then MessagePack."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any, Final

import msgspec

from trunkline.model import ClaimedJob

__all__ = ["Ended", "Hello", "Progress", "Run", "Verdict", "receive", "receive_async", "send"]

_LENGTH: Final = struct.Struct("!I")


class Hello(msgspec.Struct, tag=True, frozen=True):
    """First message to a child: where to import from and where to write to."""

    path: list[str]
    dsn: str
    # Form and level of the worker's log; None where the application sets it up itself.
    log: tuple[str, str] | None = None


class Run(msgspec.Struct, tag=True, frozen=True):
    """Run a handler, named by its module and its name in it."""

    module: str
    name: str
    worker: str
    job: ClaimedJob
    # By the monotonic clock, which all processes of a machine share; see roster.check_start.
    start_before: float | None = None


class Progress(msgspec.Struct, tag=True, frozen=True):
    """A child's ctx.progress(); answered by a Verdict."""

    percent: int | None
    message: str | None
    phase: str | None


class Verdict(msgspec.Struct, tag=True, frozen=True):
    """The engine's answer to progress."""

    verdict: str


class Ended(msgspec.Struct, tag=True, frozen=True):
    """How a handler ended; `end` is one of worker.report.End, None where the job was lost."""

    end: str | None = None
    result: str | None = None
    error: dict[str, Any] | None = None
    retryable: bool = True
    delay: float | None = None
    reason: str | None = None
    in_transaction: bool = False
    # Whether the child ends now and takes no other order.
    leaving: bool = False


Message = Hello | Run | Progress | Verdict | Ended

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)


def pack(message: Message) -> bytes:
    """As it goes over the wire."""
    body = _encoder.encode(message)
    return _LENGTH.pack(len(body)) + body


def send(channel: socket.socket, message: Message) -> None:
    """Send from a blocking socket."""
    channel.sendall(pack(message))


def receive(channel: socket.socket) -> Message | None:
    """Receive on a blocking socket; None when the other side is gone."""
    head = _exactly(channel, _LENGTH.size)
    body = _exactly(channel, _LENGTH.unpack(head)[0]) if head else None
    return _decoder.decode(body) if body else None


async def receive_async(reader: asyncio.StreamReader) -> Message | None:
    """Receive in an event loop; None when the other side is gone."""
    try:
        head = await reader.readexactly(_LENGTH.size)
        return _decoder.decode(await reader.readexactly(_LENGTH.unpack(head)[0]))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def _exactly(channel: socket.socket, size: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        part = channel.recv(size - len(parts))
        if not part:
            return None
        parts += part
    return bytes(parts)

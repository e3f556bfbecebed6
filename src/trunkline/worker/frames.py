"""Messages between a worker and its handler processes: a length, then MessagePack."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any, Final

import msgspec

from trunkline.model import ClaimedJob

__all__ = [
    "Emit",
    "Ended",
    "Hello",
    "Inputs",
    "Progress",
    "Run",
    "StepResults",
    "Verdict",
    "receive",
    "receive_async",
    "send",
]

_LENGTH: Final = struct.Struct("!I")


class Hello(msgspec.Struct, tag=True, frozen=True):
    """The first message to a child: its import path, its database and its log settings."""

    path: list[str]
    dsn: str
    # Format and level of the worker's log; None if the application configures logging itself.
    log: tuple[str, str] | None = None
    # The pickled store of the application, which may have been passed as an object.
    store: bytes | None = None


class StepResults(msgspec.Struct, frozen=True):
    """The results of many jobs: their step, their number, and the first page as JSON texts."""

    step: str
    total: int
    first: list[str]


class Inputs(msgspec.Struct, frozen=True):
    """A payload without references, and the arguments whose results are read in pages."""

    payload: str
    sets: dict[str, StepResults] = {}
    # The arguments that are results of other steps, and those steps.
    results: dict[str, str] = {}


class Run(msgspec.Struct, tag=True, frozen=True):
    """Run the handler with this name in this module."""

    module: str
    name: str
    worker: str
    job: ClaimedJob
    inputs: Inputs
    # By the monotonic clock, which all processes of a machine share; see roster.check_start.
    start_before: float | None = None


class Progress(msgspec.Struct, tag=True, frozen=True):
    """A call of ctx.progress() in a child. The worker returns a Verdict."""

    percent: int | None
    message: str | None
    phase: str | None


class Emit(msgspec.Struct, tag=True, frozen=True):
    """Output of a handler. With `flush`, the worker returns a Verdict when all of it is stored."""

    text: str
    flush: bool = False


class Verdict(msgspec.Struct, tag=True, frozen=True):
    """The engine's answer to progress, or `ok` when output is stored."""

    verdict: str


class Ended(msgspec.Struct, tag=True, frozen=True):
    """How a handler ended. `end` is a value of worker.report.End, or None if the job was lost."""

    end: str | None = None
    result: str | None = None
    error: dict[str, Any] | None = None
    retryable: bool = True
    delay: float | None = None
    reason: str | None = None
    in_transaction: bool = False
    # Whether the child exits now and takes no other job.
    leaving: bool = False


Message = Hello | Run | Progress | Emit | Verdict | Ended

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)


def pack(message: Message) -> bytes:
    """Return the bytes of a message."""
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

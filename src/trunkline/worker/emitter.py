"""Writes the partial output of all handlers: one statement for all, up to ten times a second.

Text that a job emits meanwhile is joined, so a stream of tokens becomes few rows. What a job has
emitted is written before its end is reported, because the engine refuses output of ended attempts.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Final
from uuid import UUID

from trunkline.db.call import plain_text
from trunkline.db.calls.live import Chunk, emit
from trunkline.db.lasting import LastingConnection
from trunkline.errors import EmitTooLarge, InvalidArgument
from trunkline.model import ClaimedJob
from trunkline.worker.part import Part
from trunkline.worker.recorder import is_final

__all__ = ["MOST_EMITTED", "Emitter", "Output", "emitted_text"]

MOST_EMITTED: Final = 1024 * 1024
_EVERY: Final = 0.1
# The engine takes chunks of 64 KB, and a character has at most four bytes.
_CHUNK: Final = 16_000
_LARGEST_BATCH: Final = 200
# How long the end of a job waits for its output while the server is away.
_PATIENCE: Final = 30.0


def emitted_text(text: str, emitted: int, job: ClaimedJob) -> tuple[str, int]:
    """Return text as it is stored, and the bytes that the attempt has emitted with it."""
    if not isinstance(text, str):
        raise InvalidArgument(
            "ctx.emit takes text",
            hint="Encode other values, for example with json.dumps.",
            detail={"type": type(text).__name__},
        )
    cleaned = plain_text(text) or ""
    total = emitted + len(cleaned.encode())
    if total > MOST_EMITTED:
        raise EmitTooLarge(job.job_id, total, MOST_EMITTED)
    return cleaned, total


class Output:
    """What one attempt has emitted. Handlers in threads add to it."""

    __slots__ = ("_emitter", "bytes", "job", "lost", "number", "pending")

    def __init__(self, emitter: Emitter, job: ClaimedJob) -> None:
        self._emitter = emitter
        self.job = job
        self.bytes = 0
        self.number = 0
        self.pending: list[str] = []
        # Whether another attempt owns the job.
        self.lost = False

    def add(self, text: str) -> None:
        """Add text; raise EmitTooLarge if that is more than an attempt may emit."""
        text, self.bytes = emitted_text(text, self.bytes, self.job)
        if text:
            self._emitter.take(self, text)


class Emitter(Part):
    """Keeps output until the server has stored it."""

    name = "emitter"

    def __init__(self, dsn: str, worker: str) -> None:
        super().__init__()
        self._connection = LastingConnection(dsn, name="trunkline emitter")
        self._worker = worker
        # Attempts that have emitted something. Empty in most workers.
        self.outputs: dict[tuple[UUID, int], Output] = {}
        self._lock = threading.Lock()
        self._pending: list[Output] = []
        self._unsent: list[tuple[Output, Chunk]] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._arrived = asyncio.Event()
        self._hurry = asyncio.Event()
        self._written_at = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Start the loop."""
        self._loop = asyncio.get_running_loop()
        super().start()

    def output(self, job: ClaimedJob) -> Output:
        """Return the output of an attempt, which its handler adds to."""
        with self._lock:
            return self.outputs.setdefault((job.job_id, job.attempt), Output(self, job))

    def take(self, output: Output, text: str) -> None:
        """Note text that is to be written. Called in any thread."""
        with self._lock:
            if not output.pending:
                self._pending.append(output)
            output.pending.append(text)
            is_first = len(self._pending) == 1
        if is_first and self._loop is not None:
            self._loop.call_soon_threadsafe(self._arrived.set)

    async def flush(self, job: ClaimedJob) -> None:
        """Wait until everything that the attempt has emitted is stored, or can never be."""
        output = self.outputs.get((job.job_id, job.attempt))
        if output is None or output.lost or self._is_stored(output):
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(done)
        self._arrived.set()
        self._hurry.set()
        try:
            async with asyncio.timeout(_PATIENCE):
                await done
        except TimeoutError:
            self.log.warning(
                "the last output of job %s was not stored: the server is away", job.job_id
            )

    def flush_soon(self, job: ClaimedJob) -> Future[None]:
        """Flush from another thread."""
        assert self._loop is not None  # noqa: S101 - handlers run only while the worker does
        return asyncio.run_coroutine_threadsafe(self.flush(job), self._loop)

    def end(self, job: ClaimedJob) -> None:
        """Drop what is known about an attempt that has ended."""
        with self._lock:
            self.outputs.pop((job.job_id, job.attempt), None)

    def interrupt(self) -> None:
        """Wake a turn that waits, so that it ends."""
        self._arrived.set()
        self._hurry.set()

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()

    async def turn(self) -> None:
        """Write what has been emitted since the last turn."""
        await self._arrived.wait()
        pause = self._written_at + _EVERY - time.monotonic()
        if pause > 0 and not self._hurry.is_set():
            try:
                async with asyncio.timeout(pause):
                    await self._hurry.wait()
            except TimeoutError:
                pass
        self._hurry.clear()
        self._arrived.clear()
        waiting, self._waiting = self._waiting, []
        try:
            await self._write()
        except BaseException:
            self._waiting = waiting + self._waiting
            self._arrived.set()
            raise
        for done in waiting:
            if not done.done():
                done.set_result(None)

    async def _write(self) -> None:
        self._unsent += self._new_chunks()
        self._written_at = time.monotonic()
        while self._unsent:
            batch = self._unsent[:_LARGEST_BATCH]
            await self._send(batch)
            del self._unsent[: len(batch)]

    def _new_chunks(self) -> list[tuple[Output, Chunk]]:
        with self._lock:
            outputs, self._pending = self._pending, []
            texts = [(output, "".join(output.pending)) for output in outputs]
            for output in outputs:
                output.pending.clear()
        chunks = []
        for output, text in texts:
            if output.lost:
                continue
            for start in range(0, len(text), _CHUNK):
                output.number += 1
                part = text[start : start + _CHUNK]
                job = output.job
                chunks.append((output, Chunk(job.job_id, job.attempt, output.number, part)))
        return chunks

    async def _send(self, batch: Sequence[tuple[Output, Chunk]]) -> None:
        try:
            call = emit(self._worker, [chunk for _, chunk in batch])
            verdicts = await self._connection.run(call)
        except Exception as error:
            if not is_final(error):
                raise
            # The same call would always fail, and block the output of every other job.
            self.log.warning("output was not stored: %s", error)
            return
        for (output, _), verdict in zip(batch, verdicts, strict=True):
            if verdict != "ok":
                output.lost = True

    def _is_stored(self, output: Output) -> bool:
        with self._lock:
            return not output.pending and all(sent is not output for sent, _ in self._unsent)

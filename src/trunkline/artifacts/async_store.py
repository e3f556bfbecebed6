"""Stores for handlers and clients: asynchronous over threads, and blocking with the same names."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import threading
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterator,
    Sequence,
)
from contextlib import suppress
from typing import Any, Final, TypeVar, cast

from trunkline.artifacts.content import (
    AsyncContent,
    Content,
    as_async_chunks,
    chunks_of,
    counted,
    is_async,
)
from trunkline.artifacts.store import Store, StoredFile, Written

__all__ = ["AsyncStore", "SyncStore"]

T = TypeVar("T")

# Threads are started when they are needed. One transfer occupies one thread.
_THREADS: Final = 64
# How long a cancelled upload may take to remove what it has written.
_CLEAN_UP: Final = 5.0
_END: Final[Any] = object()


class _Stopped(Exception):
    """Raised inside of an upload whose task was cancelled."""


class SyncStore:
    """A store for plain functions. `store` may be a function that opens it at its first use."""

    def __init__(self, store: Store | Callable[[], Store]) -> None:
        self._source = store

    @property
    def store(self) -> Store:
        """The store itself."""
        if callable(self._source):
            self._source = self._source()
        return self._source

    def put(
        self,
        path: str,
        content: Content,
        *,
        content_type: str | None = None,
        filename: str | None = None,
        on_bytes: Callable[[int], None] | None = None,
    ) -> Written:
        """Write content of any form. `on_bytes` is called with the total before each chunk."""
        chunks = counted(chunks_of(content), on_bytes)
        return self.store.put(path, chunks, content_type=content_type, filename=filename)

    def read(self, path: str, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Return the content in chunks."""
        return self.store.read(path, start, stop)

    def iterate(self, source: Iterator[T]) -> Iterator[T]:
        """Return what a blocking iterator yields."""
        return source

    def head(self, path: str) -> StoredFile:
        """Return size and time of a file."""
        return self.store.head(path)

    def delete(self, paths: Sequence[str]) -> None:
        """Delete files."""
        self.store.delete(paths)

    def sign(self, path: str, **options: Any) -> str:
        """Return a link that works without signing in."""
        return self.store.sign(path, **options)

    def close(self) -> None:
        """Nothing is open."""


class AsyncStore:
    """A store for coroutines. Its operations run in separate threads."""

    def __init__(self, store: Store | Callable[[], Store]) -> None:
        self._source = store
        self._threads: concurrent.futures.ThreadPoolExecutor | None = None

    @property
    def store(self) -> Store:
        """The store itself."""
        if callable(self._source):
            self._source = self._source()
        return self._source

    async def put(
        self,
        path: str,
        content: AsyncContent,
        *,
        content_type: str | None = None,
        filename: str | None = None,
        on_bytes: Callable[[int], Awaitable[None]] | None = None,
    ) -> Written:
        """Write content of any form, also of an asynchronous iterator.

        If the task is cancelled, the upload ends and nothing becomes visible.
        """
        feed = _Feed(asyncio.get_running_loop(), content, on_bytes)
        try:
            return await self.call(
                lambda: self.store.put(path, feed, content_type=content_type, filename=filename),
                on_cancel=feed.stop,
            )
        finally:
            await feed.close()

    async def read(
        self, path: str, start: int = 0, stop: int | None = None
    ) -> AsyncIterator[bytes]:
        """Return the content in chunks. Close it to end early."""
        return self.iterate(await self.call(lambda: self.store.read(path, start, stop)))

    async def iterate(self, source: Iterator[T]) -> AsyncIterator[T]:
        """Return what a blocking iterator yields, one step after the other in a thread."""
        try:
            while (item := await self.call(lambda: next(source, _END))) is not _END:
                yield cast("T", item)
        finally:
            if close := getattr(source, "close", None):
                # Also if the task is cancelled: this ends the reads of a client that left.
                with suppress(ValueError):  # A step that was abandoned still runs.
                    await asyncio.shield(asyncio.ensure_future(self.call(close)))

    async def head(self, path: str) -> StoredFile:
        """Return size and time of a file."""
        return await self.call(lambda: self.store.head(path))

    async def delete(self, paths: Sequence[str]) -> None:
        """Delete files."""
        await self.call(lambda: self.store.delete(paths))

    async def sign(self, path: str, **options: Any) -> str:
        """Return a link that works without signing in."""
        return await self.call(lambda: self.store.sign(path, **options))

    async def call(
        self, function: Callable[[], T], on_cancel: Callable[[], None] = lambda: None
    ) -> T:
        """Run a blocking function in a thread. Its context is that of the task."""
        context = contextvars.copy_context()
        if self._threads is None:
            self._threads = concurrent.futures.ThreadPoolExecutor(
                _THREADS, thread_name_prefix="trunkline store"
            )
        running = asyncio.get_running_loop().run_in_executor(
            self._threads, lambda: context.run(function)
        )
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            on_cancel()
            # A thread cannot be interrupted. Give it time to remove what it has written.
            await asyncio.wait({running}, timeout=_CLEAN_UP)
            if running.done():
                running.exception()
            else:
                running.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
            raise

    async def close(self) -> None:
        """Let the threads end. A later call starts new ones."""
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(wait=False)


class _Feed:
    """The chunks of an upload for its thread; asynchronous sources are read in the event loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        content: AsyncContent,
        on_bytes: Callable[[int], Awaitable[None]] | None,
    ) -> None:
        self._loop = loop
        self._on_bytes = on_bytes
        self._stopped = threading.Event()
        self._waiting: concurrent.futures.Future[Any] | None = None
        self._source = as_async_chunks(content) if is_async(content) else None
        self._chunks = counted(
            self._from_loop() if self._source is not None else chunks_of(content),
            None if on_bytes is None else self._report,
        )

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            if self._stopped.is_set():
                raise _Stopped
            yield chunk

    def stop(self) -> None:
        """End the upload at its next chunk."""
        self._stopped.set()
        if self._waiting is not None:
            self._waiting.cancel()

    async def close(self) -> None:
        """Close the source."""
        if self._source is not None:
            with suppress(RuntimeError):
                await self._source.aclose()

    def _from_loop(self) -> Iterator[bytes]:
        assert self._source is not None  # noqa: S101 - see __init__
        while (chunk := self._wait(_next(self._source))) is not None:
            yield chunk

    def _report(self, total: int) -> None:
        assert self._on_bytes is not None  # noqa: S101 - see __init__
        self._wait(_awaited(self._on_bytes(total)))

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        self._waiting = waiting = asyncio.run_coroutine_threadsafe(work, self._loop)
        if self._stopped.is_set():
            waiting.cancel()
        try:
            return waiting.result()
        except (asyncio.CancelledError, concurrent.futures.CancelledError):
            raise _Stopped from None


async def _next(source: AsyncGenerator[bytes]) -> bytes | None:
    return await anext(source, None)


async def _awaited(work: Awaitable[T]) -> T:
    return await work

"""Connections of one process, shared by its callers; the two classes have the same face."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from threading import Lock
from typing import Any, Final, TypeVar

import psycopg
import psycopg_pool

from trunkline.db.call import Call
from trunkline.db.connect import (
    check_if_idle,
    check_if_idle_async,
    configure,
    configure_async,
    connect,
    connect_async,
    options,
)
from trunkline.db.dsn import resolve_ready
from trunkline.db.runner import run, run_async
from trunkline.db.translate import translated

__all__ = ["AsyncPool", "SyncPool"]

T = TypeVar("T")

_WAIT: Final = 30.0
_RECONNECT: Final = 300.0


def _settings(dsn: str, size: int, name: str) -> dict[str, Any]:
    return {
        "conninfo": dsn,
        "kwargs": options(name, dsn),
        "min_size": 1,
        "max_size": size,
        "timeout": _WAIT,
        # While the server is away the pool goes on trying for this long before it gives up.
        "reconnect_timeout": _RECONNECT,
        "open": False,
        "name": name,
    }


class AsyncPool:
    """Opens at its first use, in the event loop of that use; another loop gets another pool."""

    def __init__(self, dsn: str | None, *, size: int = 10, name: str = "trunkline") -> None:
        self._dsn = dsn
        self._size = size
        self._name = name
        self._resources = ExitStack()
        self._pool: psycopg_pool.AsyncConnectionPool[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._found = ""
        self._lock = asyncio.Lock()

    async def run(self, call: Call[T]) -> T:
        """Run one call on a connection of the pool; it commits by itself."""
        async with self.connection() as connection:
            return await run_async(connection, call)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        """Borrow a connection in autocommit."""
        pool = await self._opened()
        try:
            connection = await pool.getconn()
        except psycopg_pool.PoolTimeout as error:
            # Why no connection could be made is only in the log of the pool: ask once more.
            async with connect_async(self._found, name=self._name):
                with translated():
                    raise error
        try:
            yield connection
        finally:
            await pool.putconn(connection)

    async def close(self) -> None:
        """Close the connections and leave an embedded server."""
        pool, self._pool = self._pool, None
        if pool is not None and self._loop is asyncio.get_running_loop():
            await pool.close()
        self._resources.close()

    async def _opened(self) -> psycopg_pool.AsyncConnectionPool[Any]:
        loop = asyncio.get_running_loop()
        if self._pool is not None and self._loop is loop:
            return self._pool
        if self._loop is not loop:
            # The loop of the old pool has ended, and its connections with it.
            self._pool, self._loop, self._lock = None, loop, asyncio.Lock()
        async with self._lock:
            if self._pool is None:
                self._pool = await self._open()
        return self._pool

    async def _open(self) -> psycopg_pool.AsyncConnectionPool[Any]:
        self._found = dsn = await asyncio.to_thread(
            self._resources.enter_context, resolve_ready(self._dsn)
        )
        # A first connection by hand: the pool would hide why it fails.
        async with connect_async(dsn, name=self._name):
            pass
        pool: psycopg_pool.AsyncConnectionPool[Any] = psycopg_pool.AsyncConnectionPool(
            check=check_if_idle_async,
            configure=configure_async,
            **_settings(dsn, self._size, self._name),
        )
        await pool.open()
        return pool


class SyncPool:
    """The same for threads."""

    def __init__(self, dsn: str | None, *, size: int = 10, name: str = "trunkline") -> None:
        self._dsn = dsn
        self._size = size
        self._name = name
        self._resources = ExitStack()
        self._pool: psycopg_pool.ConnectionPool[Any] | None = None
        self._found = ""
        self._lock = Lock()

    def run(self, call: Call[T]) -> T:
        """Run one call on a connection of the pool; it commits by itself."""
        with self.connection() as connection:
            return run(connection, call)

    @contextmanager
    def connection(self) -> Iterator[psycopg.Connection[Any]]:
        """Borrow a connection in autocommit."""
        pool = self._opened()
        try:
            connection = pool.getconn()
        except psycopg_pool.PoolTimeout as error:
            with connect(self._found, name=self._name), translated():
                raise error
        try:
            yield connection
        finally:
            pool.putconn(connection)

    def close(self) -> None:
        """Close the connections and leave an embedded server."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()
        self._resources.close()

    def _opened(self) -> psycopg_pool.ConnectionPool[Any]:
        if self._pool is not None:
            return self._pool
        with self._lock:
            if self._pool is None:
                self._pool = self._open()
        return self._pool

    def _open(self) -> psycopg_pool.ConnectionPool[Any]:
        self._found = dsn = self._resources.enter_context(resolve_ready(self._dsn))
        with connect(dsn, name=self._name):
            pass
        pool: psycopg_pool.ConnectionPool[Any] = psycopg_pool.ConnectionPool(
            check=check_if_idle, configure=configure, **_settings(dsn, self._size, self._name)
        )
        pool.open()
        return pool

"""Connections of one process, shared by its callers. Both classes have the same methods."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from threading import Lock
from typing import Any, Final, TypeVar

import psycopg_pool

from trunkline.db.address import address
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
from trunkline.db.patient import (
    CALL_PATIENCE,
    PING_PATIENCE,
    AsyncPatientConnection,
    PatientConnection,
)
from trunkline.db.runner import run, run_with, run_with_async
from trunkline.db.translate import translated
from trunkline.db.wires import Wires

__all__ = ["AsyncPool", "SyncPool"]

T = TypeVar("T")

_WAIT: Final = 30.0
_RECONNECT: Final = 300.0
# Pools of a parent process, kept referenced: collecting them in the child would end the sessions of
# the parent.
_left_to_parents: list[object] = []


def _settings(dsn: str, size: int, name: str) -> dict[str, Any]:
    return {
        "conninfo": dsn,
        "kwargs": options(name, dsn),
        "min_size": 1,
        "max_size": size,
        "timeout": _WAIT,
        # How long the pool tries to connect again while the server is away.
        "reconnect_timeout": _RECONNECT,
        "open": False,
        "name": name,
    }


class _LoopConnections:
    """The connections of one event loop: wires for calls, and a pool to borrow from."""

    __slots__ = ("lock", "pool", "wires")

    def __init__(self) -> None:
        self.wires: Wires | None = None
        self.pool: psycopg_pool.AsyncConnectionPool[AsyncPatientConnection] | None = None
        self.lock = asyncio.Lock()


class AsyncPool:
    """Opens at its first use. A connection belongs to one event loop, so each loop has its own."""

    def __init__(
        self,
        dsn: str | None,
        *,
        embedded: bool | None = None,
        size: int = 10,
        name: str = "trunkline",
    ) -> None:
        self._dsn = dsn
        self._embedded = embedded
        self._size = size
        self._name = name
        self._resources = ExitStack()
        self._homes: dict[asyncio.AbstractEventLoop, _LoopConnections] = {}
        self._server_dsn = ""

    async def run(self, call: Call[T], patience: float = CALL_PATIENCE) -> T:
        """Run one call on a connection of the pool, in its own transaction."""
        home = self._home()
        wires = home.wires or await self._open_wires(home)
        return await wires.run(call, patience)

    async def run_with(
        self, call: Call[T], settings: Mapping[str, str], patience: float = CALL_PATIENCE
    ) -> T:
        """Run one call in a transaction with these settings, which end with the transaction."""
        async with self.connection() as connection:
            connection.patience = patience
            return await run_with_async(connection, call, settings)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncPatientConnection]:
        """Borrow a connection in autocommit, whose statements have no deadline."""
        home = self._home()
        pool = home.pool or await self._open_pool(home)
        try:
            connection = await pool.getconn()
        except psycopg_pool.PoolTimeout as error:
            # The reason is only in the pool's log, so connect directly to get the error.
            async with connect_async(self._server_dsn, name=self._name):
                with translated():
                    raise error
        connection.patience = None
        connection.lost = False
        try:
            yield connection
        finally:
            connection.patience = PING_PATIENCE
            await pool.putconn(connection)

    async def server_dsn(self) -> str:
        """Return the connection string of the server, which is found at the first use."""
        await self._open_wires(self._home())
        return self._server_dsn

    @property
    def address(self) -> str:
        """Host, port and database of the server, or the folder of the embedded one."""
        return address(self._server_dsn) if self._server_dsn else ""

    async def is_pooled(self) -> bool:
        """Return whether a pooler is between us and the server."""
        async with self.connection() as connection:
            return connection.prepare_threshold is None

    async def close(self) -> None:
        """Close the connections of this event loop, drop the others, leave the embedded server."""
        home = self._homes.get(asyncio.get_running_loop())
        if home is not None and home.pool is not None:
            await home.pool.close()
        self.abandon()

    def abandon(self) -> None:
        """Drop the connections without an event loop that could close them properly."""
        for loop, home in self._homes.items():
            if home.wires is not None and not _runs_elsewhere(loop):
                home.wires.close()
        self._homes = {}
        self._leave()

    def _leave(self) -> None:
        self._server_dsn = ""
        self._resources.close()

    def _home(self) -> _LoopConnections:
        loop = asyncio.get_running_loop()
        home = self._homes.get(loop)
        if home is None:
            # The connections of closed loops can no longer be used.
            for ended in [old_loop for old_loop in self._homes if old_loop.is_closed()]:
                wires = self._homes.pop(ended).wires
                if wires is not None:
                    wires.close()
            home = self._homes[loop] = _LoopConnections()
        return home

    async def _open_wires(self, home: _LoopConnections) -> Wires:
        async with home.lock:
            if home.wires is None:
                await self._find()
                home.wires = Wires(self._server_dsn, size=self._size, name=self._name)
            return home.wires

    async def _open_pool(
        self, home: _LoopConnections
    ) -> psycopg_pool.AsyncConnectionPool[AsyncPatientConnection]:
        async with home.lock:
            if home.pool is None:
                await self._find()
                pool: psycopg_pool.AsyncConnectionPool[AsyncPatientConnection] = (
                    psycopg_pool.AsyncConnectionPool(
                        connection_class=AsyncPatientConnection,
                        check=check_if_idle_async,
                        configure=configure_async,
                        **_settings(self._server_dsn, self._size, self._name),
                    )
                )
                await pool.open()
                home.pool = pool
            return home.pool

    async def _find(self) -> None:
        if self._server_dsn:
            return
        try:
            self._server_dsn = await asyncio.to_thread(
                self._resources.enter_context, resolve_ready(self._dsn, embedded=self._embedded)
            )
            # Connect once directly, because a pool would hide the error.
            async with connect_async(self._server_dsn, name=self._name):
                pass
        except BaseException:
            # The next use resolves the server again, and starts an embedded one that died.
            self._leave()
            raise


def _runs_elsewhere(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether another thread runs this loop, so that its sockets must not be touched."""
    try:
        return loop.is_running() and loop is not asyncio.get_running_loop()
    except RuntimeError:
        return loop.is_running()


class SyncPool:
    """The blocking form of `AsyncPool`, for threads."""

    def __init__(
        self,
        dsn: str | None,
        *,
        embedded: bool | None = None,
        size: int = 10,
        name: str = "trunkline",
    ) -> None:
        self._dsn = dsn
        self._embedded = embedded
        self._size = size
        self._name = name
        self._resources = ExitStack()
        self._pool: psycopg_pool.ConnectionPool[PatientConnection] | None = None
        self._server_dsn = ""
        self._lock = Lock()
        self._process = os.getpid()

    def run(self, call: Call[T], patience: float = CALL_PATIENCE) -> T:
        """Run one call on a connection of the pool, in its own transaction."""
        with self.connection(patience) as connection:
            return run(connection, call)

    def run_with(
        self, call: Call[T], settings: Mapping[str, str], patience: float = CALL_PATIENCE
    ) -> T:
        """Run one call in a transaction with these settings, which end with the transaction."""
        with self.connection(patience) as connection:
            return run_with(connection, call, settings)

    @contextmanager
    def connection(self, patience: float | None = None) -> Iterator[PatientConnection]:
        """Borrow a connection in autocommit; without patience, its statements have no deadline."""
        pool = self._opened()
        try:
            connection = pool.getconn()
        except psycopg_pool.PoolTimeout as error:
            with connect(self._server_dsn, name=self._name), translated():
                raise error
        connection.patience = patience
        connection.lost = False
        try:
            yield connection
        finally:
            connection.patience = PING_PATIENCE
            pool.putconn(connection)

    def server_dsn(self) -> str:
        """Return the connection string of the server, which is found at the first use."""
        self._opened()
        return self._server_dsn

    @property
    def address(self) -> str:
        """Host, port and database of the server, or the folder of the embedded one."""
        return address(self._server_dsn) if self._server_dsn else ""

    def is_pooled(self) -> bool:
        """Return whether a pooler is between us and the server."""
        with self.connection() as connection:
            return connection.prepare_threshold is None

    def close(self) -> None:
        """Close the connections and leave the embedded server."""
        self._drop_parent_pool()
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()
        self._resources.close()

    def abandon(self) -> None:
        """Close the connections, which needs no event loop here."""
        self.close()

    def _opened(self) -> psycopg_pool.ConnectionPool[PatientConnection]:
        pool = self._pool
        if pool is not None and self._process == os.getpid():
            return pool
        with self._lock:
            self._drop_parent_pool()
            if self._pool is None:
                self._pool = self._open()
            return self._pool

    def _drop_parent_pool(self) -> None:
        """After a fork, use new connections: two processes must not read from the same sockets."""
        if self._process != os.getpid():
            _left_to_parents.append((self._pool, self._resources))
            self._pool, self._resources = None, ExitStack()
            self._process = os.getpid()

    def _open(self) -> psycopg_pool.ConnectionPool[PatientConnection]:
        try:
            self._server_dsn = dsn = self._resources.enter_context(
                resolve_ready(self._dsn, embedded=self._embedded)
            )
            with connect(dsn, name=self._name):
                pass
        except BaseException:
            self._resources.close()
            raise
        pool = psycopg_pool.ConnectionPool(
            connection_class=PatientConnection,
            check=check_if_idle,
            configure=configure,
            **_settings(dsn, self._size, self._name),
        )
        pool.open()
        return pool

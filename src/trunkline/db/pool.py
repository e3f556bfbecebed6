"""Connections of one process, shared by its callers; the two classes have the same face."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from threading import Lock
from typing import Any, Final, TypeVar

import psycopg_pool

from trunkline.db.address import address
from trunkline.db.call import Call, plain_text
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
from trunkline.db.runner import run, run_async
from trunkline.db.translate import translated
from trunkline.db.wires import Wires

__all__ = ["AsyncPool", "SyncPool"]

T = TypeVar("T")

_WAIT: Final = 30.0
_RECONNECT: Final = 300.0
_SET: Final = (
    "select set_config(s.name, s.value, true)"
    " from unnest(%s::text[], %s::text[]) as s (name, value)"
)

# Pools of a parent process: collected in its child they would end the parent's sessions.
_left_to_parents: list[object] = []


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


def _pairs(settings: Mapping[str, str]) -> tuple[list[str], list[str | None]]:
    return list(settings), [plain_text(value) for value in settings.values()]


class _Home:
    """What belongs to one event loop: wires for calls, and connections that can be borrowed."""

    __slots__ = ("lock", "pool", "wires")

    def __init__(self) -> None:
        self.wires: Wires | None = None
        self.pool: psycopg_pool.AsyncConnectionPool[AsyncPatientConnection] | None = None
        self.lock = asyncio.Lock()


class AsyncPool:
    """Opens at its first use. A connection lives in one event loop, so each loop has its own."""

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
        self._homes: dict[asyncio.AbstractEventLoop, _Home] = {}
        self._found = ""

    async def run(self, call: Call[T], patience: float = CALL_PATIENCE) -> T:
        """Run one call on a connection of the pool; it commits by itself."""
        home = self._home()
        wires = home.wires or await self._open_wires(home)
        return await wires.run(call, patience)

    async def run_with(
        self, call: Call[T], settings: Mapping[str, str], patience: float = CALL_PATIENCE
    ) -> T:
        """Run one call in a transaction that has these settings, and only this transaction."""
        async with self.connection() as connection:
            connection.patience = patience
            with translated():
                async with connection.transaction():
                    await connection.execute(_SET, _pairs(settings))
                    return await run_async(connection, call)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncPatientConnection]:
        """Borrow a connection in autocommit, whose statements may take as long as they like."""
        home = self._home()
        pool = home.pool or await self._open_pool(home)
        try:
            connection = await pool.getconn()
        except psycopg_pool.PoolTimeout as error:
            # Why no connection could be made is only in the log of the pool: ask once more.
            async with connect_async(self._found, name=self._name):
                with translated():
                    raise error
        connection.patience = None
        connection.lost = False
        try:
            yield connection
        finally:
            connection.patience = PING_PATIENCE
            await pool.putconn(connection)

    @property
    def address(self) -> str:
        """Host, port and database of the server that was found, or the embedded one's folder."""
        return address(self._found) if self._found else ""

    async def close(self) -> None:
        """Close the connections of this event loop, forget the others, leave an embedded server."""
        home = self._homes.get(asyncio.get_running_loop())
        if home is not None and home.pool is not None:
            await home.pool.close()
        self.abandon()

    def abandon(self) -> None:
        """Leave without a word, where no event loop runs that could close the connections."""
        for loop, home in self._homes.items():
            if home.wires is not None and not _runs_elsewhere(loop):
                home.wires.close()
        self._homes = {}
        self._leave()

    def _leave(self) -> None:
        self._found = ""
        self._resources.close()

    def _home(self) -> _Home:
        loop = asyncio.get_running_loop()
        home = self._homes.get(loop)
        if home is None:
            # Loops that have ended took their connections along.
            for ended in [one for one in self._homes if one.is_closed()]:
                wires = self._homes.pop(ended).wires
                if wires is not None:
                    wires.close()
            home = self._homes[loop] = _Home()
        return home

    async def _open_wires(self, home: _Home) -> Wires:
        async with home.lock:
            if home.wires is None:
                await self._find()
                home.wires = Wires(self._found, size=self._size, name=self._name)
            return home.wires

    async def _open_pool(
        self, home: _Home
    ) -> psycopg_pool.AsyncConnectionPool[AsyncPatientConnection]:
        async with home.lock:
            if home.pool is None:
                await self._find()
                pool: psycopg_pool.AsyncConnectionPool[AsyncPatientConnection] = (
                    psycopg_pool.AsyncConnectionPool(
                        connection_class=AsyncPatientConnection,
                        check=check_if_idle_async,
                        configure=configure_async,
                        **_settings(self._found, self._size, self._name),
                    )
                )
                await pool.open()
                home.pool = pool
            return home.pool

    async def _find(self) -> None:
        if self._found:
            return
        try:
            self._found = await asyncio.to_thread(
                self._resources.enter_context, resolve_ready(self._dsn, embedded=self._embedded)
            )
            # A first connection by hand: a pool would hide why it fails.
            async with connect_async(self._found, name=self._name):
                pass
        except BaseException:
            # The next use looks anew, and starts an embedded server that died.
            self._leave()
            raise


def _runs_elsewhere(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether another thread is in it; its sockets are not ours to touch."""
    try:
        return loop.is_running() and loop is not asyncio.get_running_loop()
    except RuntimeError:
        return loop.is_running()


class SyncPool:
    """The same for threads."""

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
        self._found = ""
        self._lock = Lock()
        self._process = os.getpid()

    def run(self, call: Call[T], patience: float = CALL_PATIENCE) -> T:
        """Run one call on a connection of the pool; it commits by itself."""
        with self.connection(patience) as connection:
            return run(connection, call)

    def run_with(
        self, call: Call[T], settings: Mapping[str, str], patience: float = CALL_PATIENCE
    ) -> T:
        """Run one call in a transaction that has these settings, and only this transaction."""
        with self.connection(patience) as connection, translated(), connection.transaction():
            connection.execute(_SET, _pairs(settings))
            return run(connection, call)

    @contextmanager
    def connection(self, patience: float | None = None) -> Iterator[PatientConnection]:
        """Borrow a connection in autocommit; without patience its statements may take long."""
        pool = self._opened()
        try:
            connection = pool.getconn()
        except psycopg_pool.PoolTimeout as error:
            with connect(self._found, name=self._name), translated():
                raise error
        connection.patience = patience
        connection.lost = False
        try:
            yield connection
        finally:
            connection.patience = PING_PATIENCE
            pool.putconn(connection)

    @property
    def address(self) -> str:
        """Host, port and database of the server that was found, or the embedded one's folder."""
        return address(self._found) if self._found else ""

    def close(self) -> None:
        """Close the connections and leave an embedded server."""
        self._forget_parent()
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()
        self._resources.close()

    def abandon(self) -> None:
        """The same as closing: threads need no event loop for it."""
        self.close()

    def _opened(self) -> psycopg_pool.ConnectionPool[PatientConnection]:
        pool = self._pool
        if pool is not None and self._process == os.getpid():
            return pool
        with self._lock:
            self._forget_parent()
            if self._pool is None:
                self._pool = self._open()
            return self._pool

    def _forget_parent(self) -> None:
        """After a fork, two processes would read each other's answers from the same sockets."""
        if self._process != os.getpid():
            _left_to_parents.append((self._pool, self._resources))
            self._pool, self._resources = None, ExitStack()
            self._process = os.getpid()

    def _open(self) -> psycopg_pool.ConnectionPool[PatientConnection]:
        try:
            self._found = dsn = self._resources.enter_context(
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

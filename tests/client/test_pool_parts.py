"""Pools on a real server: used up, opened once, and asked after a pause."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

import psycopg_pool
import pytest

from tests.support.databases import Database
from trunkline.db import connect as connecting
from trunkline.db.call import Call, nothing, scalar
from trunkline.db.connect import connect
from trunkline.db.pool import AsyncPool, SyncPool
from trunkline.db.translate import translated
from trunkline.errors import TooManyConnections

_ONE: Call[int] = Call("select 1", (), scalar)
_SLOW: Call[None] = Call("select pg_sleep(600)", (), nothing)
_BACKEND: Call[int] = Call("select pg_backend_pid()", (), scalar)
_ADD: Call[int] = Call("select %s::integer + 1", (1,), scalar)
_PREPARED: Call[int] = Call("select count(*) from pg_prepared_statements", (), scalar)
_TIMEOUT: Call[str] = Call("select current_setting('statement_timeout')", (), scalar)


def _run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 300))


def test_an_exhausted_pool_reports_that(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.db.pool._WAIT", 0.2)
    sync = SyncPool(database.dsn, size=1)
    assert sync.address == ""
    with sync.connection() as first:
        assert first.patience is None
        with pytest.raises(TooManyConnections), sync.connection():
            pass
    assert database.name in sync.address
    with sync.connection(7.0) as again:
        assert again is first
        assert again.patience == 7.0
        again.lost = True
    assert first.patience == 5.0
    with sync.connection() as again:  # type: ignore[unreachable]
        assert not again.lost
    sync.close()

    async def story() -> None:
        pool = AsyncPool(database.dsn, size=1)
        assert pool.address == ""
        async with pool.connection() as one:
            one.lost = True
            with pytest.raises(TooManyConnections):
                async with pool.connection():
                    pass
        assert database.name in pool.address
        async with pool.connection() as again:
            assert again is one
            assert not again.lost
        await pool.close()
        assert pool.address == ""

    _run(story())


def test_a_pool_opens_once_for_all_first_callers(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    real = connecting.connect

    def counted(dsn: str, *, name: str) -> Any:
        opened.append(name)
        return real(dsn, name=name)

    monkeypatch.setattr("trunkline.db.pool.connect", counted)
    sync = SyncPool(database.dsn, size=4)
    gate = threading.Barrier(3)

    def use() -> None:
        gate.wait(60)
        assert sync.run(_ONE) == 1

    threads = [threading.Thread(target=use) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    sync.close()
    assert opened == ["trunkline"]

    async def story() -> None:
        found: list[int] = []
        pool = AsyncPool(database.dsn, size=4)
        original = AsyncPool._find  # noqa: SLF001

        async def find(self: AsyncPool) -> None:
            found.append(1)
            await original(self)

        monkeypatch.setattr(AsyncPool, "_find", find)

        async def borrow() -> None:
            async with pool.connection():
                pass

        assert await asyncio.gather(*(pool.run(_ONE) for _ in range(3))) == [1, 1, 1]
        assert len(found) == 1
        await asyncio.gather(*(borrow() for _ in range(3)))
        assert len(found) == 2
        await pool.close()

    _run(story())


def test_connections_are_asked_only_after_a_pause(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    with connect(database.dsn) as connection:
        monkeypatch.setattr(connecting, "_PING", "select 'asked'")
        real = connection.execute

        def execute(query: Any, *more: Any, **options: Any) -> Any:
            asked.append(query)
            return real(query, *more, **options)

        monkeypatch.setattr(connection, "execute", execute)
        connecting.check_if_idle(connection)
        connecting.check_if_idle(connection)
        assert asked == ["select 'asked'"]
        assert connection.patience == 5.0
        monkeypatch.setattr(connecting, "_FRESH", -1.0)
        connecting.check_if_idle(connection)
        assert len(asked) == 2


def test_a_pool_timeout_is_too_many_connections() -> None:
    late = "No connection became free in time: late"
    with pytest.raises(TooManyConnections, match=late), translated():
        raise psycopg_pool.PoolTimeout("late")
    with pytest.raises(KeyError), translated():
        raise KeyError("x")

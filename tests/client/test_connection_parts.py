"""Connections one by one on a real server: wires, lasting connections, listeners, pools."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

import psycopg
import pytest

from tests.support.databases import Database
from trunkline.db import wires as module
from trunkline.db.call import Call, nothing, scalar
from trunkline.db.connect import connect, connect_async, open_async, options
from trunkline.db.lasting import LastingConnection
from trunkline.db.listener import WAKE, Listener
from trunkline.db.loss import database_lost
from trunkline.db.pool import AsyncPool
from trunkline.db.wire import Wire
from trunkline.db.wires import Wires
from trunkline.errors import ConnectionLost, DatabaseProblem, SchemaMissing

_ONE: Call[int] = Call("select 1", (), scalar)
_SLOW: Call[None] = Call("select pg_sleep(600)", (), nothing)
_BACKEND: Call[int] = Call("select pg_backend_pid()", (), scalar)
_ADD: Call[int] = Call("select %s::integer + 1", (1,), scalar)
_PREPARED: Call[int] = Call("select count(*) from pg_prepared_statements", (), scalar)
_TIMEOUT: Call[str] = Call("select current_setting('statement_timeout')", (), scalar)


def _setting(name: str) -> Call[str]:
    return Call("select current_setting(%s)", (name,), scalar)


async def _until(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


def _run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 300))


def _kill(database: Database, backend: int) -> None:
    database.superuser().execute("select pg_terminate_backend(%s, 60000)", (backend,))


def test_what_the_string_sets_wins_over_our_options() -> None:
    found = options("me", "postgresql://u@h/d?connect_timeout=1&keepalives_idle=9")
    assert found == {
        "autocommit": True,
        "fallback_application_name": "me",
        "keepalives_interval": 1,
        "keepalives_count": 3,
        "tcp_user_timeout": 8000,
    }
    assert options("me", "postgresql://u@h/d")["connect_timeout"] == 5
    assert options("me", "postgresql://u@h/d")["keepalives_idle"] == 4


def test_a_connection_has_settings_that_the_engine_needs(database: Database) -> None:
    admin = database.superuser()
    name = database.name
    for setting in ("lock_timeout = '7s'", "default_transaction_isolation = 'serializable'"):
        admin.execute(f'alter database "{name}" set {setting}'.encode())
    expected = {
        "lock_timeout": "0",
        "default_transaction_isolation": "read committed",
        "application_name": "me",
    }
    with connect(database.dsn, name="me") as connection:
        for setting, value in expected.items():
            row = connection.execute("select current_setting(%s)", (setting,)).fetchone()
            assert row == (value,)
        assert connection.patience == 30.0
        assert connection.autocommit

    async def story() -> None:
        async with connect_async(database.dsn, name="me") as connection:
            assert connection.patience == 30.0
            for setting, value in expected.items():
                cursor = await connection.execute("select current_setting(%s)", (setting,))
                assert await cursor.fetchone() == (value,)
        assert connection.closed
        # Borrowed connections keep the timeouts of the role: they are for handlers.
        pool = AsyncPool(database.dsn)
        async with pool.connection() as borrowed:
            cursor = await borrowed.execute("select current_setting('lock_timeout')")
            assert await cursor.fetchone() == ("7s",)
            assert borrowed.patience is None
        await pool.close()

    _run(story())


def test_a_database_without_a_schema_is_named_and_left(database: Database) -> None:
    database.superuser().execute("drop schema trunkline cascade")
    with pytest.raises(SchemaMissing, match=database.name), connect(database.dsn):
        pass

    async def story() -> None:
        with pytest.raises(SchemaMissing, match=database.name):
            await open_async(database.dsn, name="me")

    _run(story())
    left = database.superuser().execute(
        "select count(*) from pg_stat_activity where datname = current_database()"
        " and application_name in ('me', 'trunkline')"
    )
    assert left.fetchone() == (0,)


def test_a_silent_server_is_abandoned_and_known_to_be_ours(database: Database) -> None:
    with connect(database.dsn) as connection:
        connection.patience = 0.2
        with pytest.raises(psycopg.OperationalError) as silent:
            connection.execute("select pg_sleep(600)")
        assert str(silent.value) == "no answer from the server within 0.2 seconds"
        assert connection.closed
        assert connection.lost
        assert database_lost(silent.value)

    async def story() -> None:
        connection = await open_async(database.dsn, name="me")
        connection.patience = 0.2
        with pytest.raises(psycopg.OperationalError) as silent:
            await connection.execute("select pg_sleep(600)")
        assert str(silent.value) == "no answer from the server within 0.2 seconds"
        assert connection.closed
        assert connection.lost
        assert database_lost(silent.value)

    _run(story())


def test_an_error_of_a_statement_is_no_loss(database: Database) -> None:
    with connect(database.dsn) as connection:
        with pytest.raises(psycopg.errors.DivisionByZero) as failed:
            connection.execute("select 1/0")
        assert not connection.lost
        assert not database_lost(failed.value)
        # A wait with its own timeout is not ours to end.
        connection.execute("listen x")
        assert list(connection.notifies(timeout=0.05)) == []
        assert not connection.closed
        assert connection.execute("select 1").fetchone() == (1,)


def test_a_wire_prepares_what_it_sees_twice(database: Database) -> None:
    async def story() -> None:
        wire = Wire(await open_async(database.dsn, name="me"))
        assert not wire.closed
        counts = []
        for _ in range(3):
            assert await wire.run(_ADD, 30) == 2
            counts.append(await wire.run(_PREPARED, 30))
        # Statements without parameters are not prepared.
        assert counts == [0, 1, 1]
        with pytest.raises(DatabaseProblem, match="division"):
            await wire.run(Call("select 1/%s::integer", (0,), scalar), 30)
        assert await wire.run(_ONE, 30) == 1
        await wire.close()
        assert wire.closed
        wire.abandon()  # type: ignore[unreachable]
        for call in (_ONE, _ADD):
            with pytest.raises(ConnectionLost, match="the connection is closed"):
                await wire.run(call, 30)
        unprepared = await open_async(database.dsn, name="me")
        unprepared.prepare_threshold = None
        wire = Wire(unprepared)
        for _ in range(3):
            assert await wire.run(_ADD, 30) == 2
        assert await wire.run(_PREPARED, 30) == 0
        await wire.close()

    _run(story())


def test_a_wire_closes_after_its_patience_and_ends_waiting_calls(database: Database) -> None:
    async def story() -> None:
        wire = Wire(await open_async(database.dsn, name="me"))
        # A long patience, then a short one: the timer is set anew.
        assert await wire.run(_ONE, 600) == 1
        with pytest.raises(ConnectionLost, match=r"no answer from the server within 0\.2 seconds"):
            await wire.run(_SLOW, 0.2)
        assert wire.closed
        # A short patience that has passed does not end a later call with a longer one.
        wire = Wire(await open_async(database.dsn, name="me"))
        assert await wire.run(_ONE, 2) == 1
        assert await wire.run(Call("select 1 from pg_sleep(2.1)", (), scalar), 60) == 1
        waiting = asyncio.ensure_future(wire.run(_SLOW, 60))
        await asyncio.sleep(0)
        wire.abandon()
        with pytest.raises(ConnectionLost, match="the connection is closed"):
            await waiting
        # Cancelled: an answer is on its way that nobody waits for.
        wire = Wire(await open_async(database.dsn, name="me"))
        waiting = asyncio.ensure_future(wire.run(_SLOW, 60))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert wire.closed
        # Killed while idle, and in the middle of a call: the server's last words are passed on.
        wire = Wire(await open_async(database.dsn, name="me"))
        backend = await wire.run(_BACKEND, 30)
        await asyncio.to_thread(_kill, database, backend)
        await _until(lambda: wire.closed)
        wire = Wire(await open_async(database.dsn, name="me"))
        backend = await wire.run(_BACKEND, 30)
        waiting = asyncio.ensure_future(wire.run(_SLOW, 60))
        await asyncio.to_thread(_kill, database, backend)
        with pytest.raises(ConnectionLost, match="terminating connection"):
            await waiting
        # More than fits into the socket at once.
        wire = Wire(await open_async(database.dsn, name="me"))
        large = "x" * 20_000_000
        assert await wire.run(Call("select length(%s)", (large,), scalar), 120) == len(large)
        await wire.close()

    _run(story())


def test_wires_are_used_again_and_asked_after_a_pause(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        wires = Wires(database.dsn, size=2, name="me")
        first = await wires.run(_BACKEND)
        assert await wires.run(_BACKEND) == first
        # Two at once are two connections, and a third waits for one of them.
        both = await asyncio.gather(*(wires.run(_BACKEND) for _ in range(3)))
        assert len(set(both)) == 2
        assert first in both
        # Rested, alive: it answers a ping.
        monkeypatch.setattr(module, "_FRESH", -1.0)
        assert await wires.run(_BACKEND) in both
        # Rested and silent: another one is made.
        monkeypatch.setattr(module, "_PING", "select pg_sleep(600)")
        monkeypatch.setattr(module, "PING_PATIENCE", 0.2)
        assert await wires.run(_BACKEND) not in both
        # Fresh ones are not asked.
        monkeypatch.setattr(module, "_FRESH", 3600.0)
        last = await wires.run(_BACKEND)
        assert await wires.run(_BACKEND) == last
        await asyncio.to_thread(_kill, database, last)
        await _until(lambda: all(wire.closed for wire, _ in wires._free))  # noqa: SLF001
        assert await wires.run(_BACKEND) != last
        # One that is in use while the others are closed is closed after it.
        rested = len(wires._free)  # noqa: SLF001
        using = asyncio.ensure_future(
            wires.run(Call("select pg_backend_pid() from pg_sleep(0.2)", (), scalar))
        )
        await _until(lambda: len(wires._free) < rested)  # noqa: SLF001
        wires.close()
        await using
        assert wires._free == []  # noqa: SLF001

    _run(story())
    # Those that sleep do not notice that nobody waits for them.
    counted = (
        "select count(*) from pg_stat_activity where application_name = 'me' and state = 'idle'"
        " and datname = current_database()"
    )

    async def gone() -> None:
        admin = database.superuser()
        await _until(lambda: admin.execute(counted.encode()).fetchone() == (0,))

    _run(gone())


def test_a_lasting_connection_limits_statements_and_returns_after_errors(
    database: Database,
) -> None:
    async def story() -> None:
        lasting = LastingConnection(database.dsn, name="me")
        assert not lasting.connected
        assert await lasting.is_pooled() is False
        assert lasting.connected
        assert await lasting.run(_TIMEOUT) == "7200ms"  # type: ignore[unreachable]
        assert await lasting.run(_TIMEOUT, patience=2.0) == "1800ms"
        assert await lasting.run(_TIMEOUT, patience=2.0) == "1800ms"
        first = await lasting.run(_BACKEND)
        await asyncio.to_thread(_kill, database, first)
        await _until(lambda: not lasting.connected)
        assert await lasting.run(_TIMEOUT) == "7200ms"
        second = await lasting.run(_BACKEND)
        assert second != first
        await lasting.close()
        assert not lasting.connected
        counted = "select count(*) from pg_stat_activity where pid = any(%s)"
        admin = database.superuser()
        await _until(lambda: admin.execute(counted, ([first, second],)).fetchone() == (0,))

    _run(story())


def test_a_listener_hears_and_notices_that_it_does_not(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        heard: list[tuple[str, str]] = []
        listener = Listener(database.dsn, lambda *notice: heard.append(notice))
        assert not listener.connected
        with pytest.raises(ConnectionLost, match="the listening connection is silent"):
            await listener.check()
        assert await listener.listen() is True
        assert listener.connected
        await listener.check()  # type: ignore[unreachable]
        database.superuser().execute(f"notify {WAKE}, 'q'".encode())
        await _until(lambda: heard)
        assert heard == [(WAKE, "q")]
        monkeypatch.setattr(Listener, "_on_notice", lambda *_: None)
        await listener.close()
        deaf = Listener(database.dsn, lambda *_: None)
        monkeypatch.setattr("trunkline.db.listener._TEST_WAIT", 0.1)
        monkeypatch.setattr("trunkline.db.listener.PING_PATIENCE", 5.0)
        assert await deaf.listen() is False
        monkeypatch.setattr(LastingConnection, "connected", property(lambda _: False))
        with pytest.raises(ConnectionLost, match="the listening connection broke"):
            await deaf.listen()
        await deaf.close()

    _run(story())

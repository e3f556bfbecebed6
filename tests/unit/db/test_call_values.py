"""Calls of operators and of the sandbox, answers as jobs, and callers' own connections."""

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from trunkline.db import disposable, foreign, notices
from trunkline.db.calls import admin, checks, flow, read, work
from trunkline.db.lasting import LastingConnection
from trunkline.db.listener import Listener
from trunkline.db.pool import AsyncPool, SyncPool
from trunkline.db.runner import run, run_async
from trunkline.errors import (
    ConnectionLost,
    DatabaseProblem,
    DatabaseUnreachable,
    TransactionConflict,
    UnsupportedConnection,
)
from trunkline.model import Enqueued, JobState

_NOW = datetime(2026, 5, 1, tzinfo=UTC)
_ID = UUID(int=7)


@pytest.mark.parametrize(
    ("call", "parameters", "function"),
    [
        (admin.pause_queue("q", "r", refuse_enqueue=True), ("q", "r", True), "pause_queue"),
        (admin.limit_queue("q", 5), ("q", 5), "limit_queue"),
        (admin.age_queue("q", ageing=True), ("q", True), "age_queue"),
        (admin.remove_schedule("s"), ("s",), "remove_schedule"),
        (admin.enable_duty("d", enabled=False), ("d", False), "enable_duty"),
        (checks.notify("n"), ("n",), "pg_notify"),
        (work.schema_release(), (), "schema_release"),
        (work.wake("w"), ("w",), "wake"),
        (flow.settle(_ID, None), (_ID, None), "settle"),
        (flow.settle(_ID, {"a": 1}), (_ID, '{"a":1}'), "settle"),
        (flow.settle_job(_ID, 2, {"a": 1}), (_ID, 2, '{"a":1}'), "settle_job"),
        (
            flow.observe_limit("l", {"a": 1}, {"k": "v"}, job=_ID, attempt=3),
            ("l", '{"a":1}', '{"k":"v"}', _ID, 3),
            "observe_limit",
        ),
        (disposable.move_clock(1.5), (1.5,), "move_clock"),
        (disposable.clock(), (), "clock"),
        (disposable.next_due(), (), "clock"),
    ],
)
def test_a_call_names_its_function_and_its_parameters(
    call: Any, parameters: tuple[Any, ...], function: str
) -> None:
    assert tuple(call.parameters) == parameters
    assert f"{function}(" in call.sql
    assert call.sql.count("%s") == len(parameters)


def test_due_times_are_the_first_column_of_each_row() -> None:
    rows = [(_NOW,), (None,)]
    assert admin.next_due("* * * * *", "UTC", None, 2).decode(rows) == [_NOW, None]


def test_a_row_becomes_a_job() -> None:
    names = read.DETAIL_NAMES
    row = dict.fromkeys(names) | {"id": _ID, "state": "dead", "task": "t"}
    found = read.job(_ID).decode([tuple(row[name] for name in names)])
    assert found is not None
    assert (found.id, found.state, found.tags, found.errors) == (_ID, JobState.DEAD, (), ())
    assert isinstance(found.state, JobState)
    full = row | {"tags": ["b", "a"], "errors": [{"m": 1}]}
    (found,) = disposable.waiting_jobs().decode([tuple(full[name] for name in names)])
    assert (found.tags, found.errors) == (("b", "a"), ({"m": 1},))


class Cursor:
    """A cursor of a caller's connection, for both kinds of blocks."""

    def __init__(self, rows: Any) -> None:
        self.rows: Any = rows
        self.ran: list[Any] = []

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None: ...

    def execute(self, *statement: Any) -> Any:
        self.ran.append(statement)
        if isinstance(self.rows, Exception):
            raise self.rows
        return self

    def fetchall(self) -> Any:
        return self.rows


class _Base:
    def __init__(self, rows: Any) -> None:
        self.made = Cursor(rows)
        self.handlers: list[Any] = []
        self.seen: list[int] = []

    def cursor(self, **_: Any) -> Cursor:
        self.seen.append(len(self.handlers))
        return self.made

    def add_notice_handler(self, handler: Any) -> None:
        self.handlers.append(handler)

    def remove_notice_handler(self, handler: Any) -> None:
        self.handlers.remove(handler)


Connection = type("Connection", (_Base,), {"__module__": "psycopg.x"})
AsyncConnection = type("AsyncConnection", (_Base,), {"__module__": "psycopg.x"})


@pytest.mark.parametrize("job", [_ID, str(_ID)])
def test_jobs_are_enqueued_on_the_callers_connection(job: Any) -> None:
    connection = Connection([(job, True, "ready", _NOW)])
    assert foreign.enqueue_on(connection, "[]") == [Enqueued(_ID, True, "ready", _NOW)]
    assert connection.made.ran[0][1] == ("[]",)
    # Notices are heard during the call alone.
    assert (connection.seen, connection.handlers) == ([1], [])


def test_a_connection_of_the_other_kind_is_refused_with_the_right_client() -> None:
    with pytest.raises(UnsupportedConnection) as refused:
        foreign.enqueue_on(AsyncConnection([]), "[]")
    assert str(refused.value) == "psycopg.x.AsyncConnection is asynchronous"
    assert refused.value.hint == "Pass it to task.options(...)."
    with pytest.raises(UnsupportedConnection) as refused:
        asyncio.run(foreign.enqueue_on_async(Connection([]), "[]"))
    assert refused.value.hint == "Pass it to task.sync.options(...)."
    with pytest.raises(UnsupportedConnection, match="is not a supported connection"):
        foreign.enqueue_on(object(), "[]")


class _Wrapped(Exception):
    orig: Any = None


def _wrapped(inner: Exception | None, module: str = "sqlalchemy.x") -> Exception:
    kind = type("Wrapped", (_Wrapped,), {"__module__": module})
    error: Any = kind("outer")
    error.orig = inner
    return error  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (psycopg.errors.DeadlockDetected("x"), TransactionConflict),
        (_wrapped(psycopg.errors.DeadlockDetected("x")), TransactionConflict),
        (_wrapped(None), ConnectionLost),
        (KeyError("x"), KeyError),
    ],
)
def test_errors_of_a_callers_connection_become_ours(
    error: Exception, expected: type[Exception]
) -> None:
    connection = Connection(error)
    with pytest.raises(expected) as raised:
        foreign.enqueue_on(connection, "[]")
    assert type(raised.value) is expected
    assert connection.handlers == []
    if expected is ConnectionLost:
        assert str(raised.value) == "The connection cannot be used: outer"


def test_a_call_that_fails_raises_an_error_of_ours() -> None:
    connection: Any = Connection(psycopg.errors.DivisionByZero("x"))
    with pytest.raises(DatabaseProblem):
        run(connection, admin.run_duties())

    class Later(Cursor):
        async def __aenter__(self) -> Any:
            return self

        async def __aexit__(self, *_: object) -> None: ...

        async def execute(self, *statement: Any) -> Any:
            self.ran.append(statement)

        async def fetchall(self) -> Any:
            return [(5,)] if self.ran else []

    cursor = Later(None)
    asynchronous: Any = SimpleNamespace(cursor=lambda **_: cursor)
    assert asyncio.run(run_async(asynchronous, work.schema_release())) == 5  # type: ignore[comparison-overlap]


def test_jobs_of_other_tasks_are_remembered_under_a_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    class Guarded(dict[str, str]):
        def __setitem__(self, key: str, value: str) -> None:
            assert notices._other_tasks_lock.locked()  # noqa: SLF001
            super().__setitem__(key, value)

    monkeypatch.setattr(notices, "_other_tasks", Guarded())
    job = uuid4()
    detail = f'{{"task": "t", "job": "{job}", "job_task": "u", "profile": "p"}}'
    notices.log_notice("01TL1", detail)
    assert notices.task_in_notice(job) == "u"


def test_a_listener_does_not_listen_through_a_pooler_or_on_a_broken_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pooled = True
    ran: list[str] = []

    async def is_pooled(_: LastingConnection) -> bool:
        return pooled

    async def ask(_: LastingConnection, call: Any, **__: Any) -> None:
        ran.append(call.sql)

    monkeypatch.setattr(LastingConnection, "is_pooled", is_pooled)
    monkeypatch.setattr(LastingConnection, "run", ask)

    async def story() -> None:
        nonlocal pooled
        listener = Listener("", lambda *_: None)
        assert await listener.listen() is False
        assert ran == []
        pooled = False
        with pytest.raises(ConnectionLost, match=r"^the listening connection broke$"):
            await listener.listen()
        assert ran == []

    asyncio.run(story())


def test_a_pool_that_finds_no_server_tries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    dsn = "postgresql://u@127.0.0.1:1/d?connect_timeout=1"
    sync = SyncPool(dsn)
    for _ in range(2):
        with pytest.raises(DatabaseUnreachable):
            sync.run(work.schema_release())
    sync.close()

    async def story() -> None:
        pool = AsyncPool(dsn)
        for _ in range(2):
            with pytest.raises(DatabaseUnreachable):
                await pool.run(work.schema_release())
            assert pool.address == ""
        await pool.close()

    asyncio.run(story())

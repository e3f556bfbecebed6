"""Enqueues on the caller's connection or session, so that jobs commit with the caller's data.

Connections are recognised by the module of their class: none of these libraries is imported here,
and none is a dependency. One text parameter carries all jobs or the workflow, so that only the
placeholder differs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, LiteralString
from uuid import UUID

from trunkline.db.calls.produce import ENQUEUE_MANY
from trunkline.db.calls.workflows import START
from trunkline.db.notices import log_notice, on_notice
from trunkline.db.translate import from_driver
from trunkline.errors import ConnectionLost, UnsupportedConnection
from trunkline.model import Enqueued, StartedWorkflow

__all__ = ["enqueue_on", "enqueue_on_async", "start_on", "start_on_async"]

_Rows = Sequence[Sequence[Any]]


def enqueue_on(connection: Any, document: str) -> list[Enqueued]:
    """Enqueue in the transaction of a synchronous connection or session."""
    return _answers(_run(connection, ENQUEUE_MANY, document, "task.options(...)"))


async def enqueue_on_async(connection: Any, document: str) -> list[Enqueued]:
    """Enqueue in the transaction of an asynchronous connection or session."""
    return _answers(await _run_async(connection, ENQUEUE_MANY, document, "task.sync.options(...)"))


def start_on(connection: Any, document: str) -> StartedWorkflow:
    """Start a workflow in the transaction of a synchronous connection or session."""
    return _started(_run(connection, START, document, "workflow.start(connection=...)"))


async def start_on_async(connection: Any, document: str) -> StartedWorkflow:
    """Start a workflow in the transaction of an asynchronous connection or session."""
    rows = await _run_async(connection, START, document, "workflow.sync.start(connection=...)")
    return _started(rows)


def _run(connection: Any, sql: LiteralString, document: str, instead: str) -> _Rows:
    run = _find(connection, _SYNCHRONOUS)
    if run is None:
        raise _unsupported(connection, _ASYNCHRONOUS, "asynchronous", instead)
    with _driver_errors():
        rows: _Rows = run(connection, sql, document)
    return rows


async def _run_async(connection: Any, sql: LiteralString, document: str, instead: str) -> _Rows:
    run = _find(connection, _ASYNCHRONOUS)
    if run is None:
        raise _unsupported(connection, _SYNCHRONOUS, "synchronous", instead)
    with _driver_errors():
        rows: _Rows = await run(connection, sql, document)
    return rows


def _numbered(sql: LiteralString) -> LiteralString:
    return sql.replace("%s", "$1")


def _named(sql: LiteralString) -> LiteralString:
    # CAST instead of ::, because SQLAlchemy takes a colon for the start of another parameter.
    return sql.replace("%s::text::jsonb", "CAST(CAST(:document AS text) AS jsonb)")


def _psycopg(connection: Any, sql: LiteralString, document: str) -> _Rows:
    # The caller's row factory may be anything.
    from psycopg.rows import tuple_row  # noqa: PLC0415 - only a caller with psycopg gets here

    connection.add_notice_handler(on_notice)
    try:
        with connection.cursor(row_factory=tuple_row) as cursor:
            rows: _Rows = cursor.execute(sql, (document,)).fetchall()
    finally:
        connection.remove_notice_handler(on_notice)
    return rows


async def _psycopg_async(connection: Any, sql: LiteralString, document: str) -> _Rows:
    from psycopg.rows import tuple_row  # noqa: PLC0415 - as above

    connection.add_notice_handler(on_notice)
    try:
        async with connection.cursor(row_factory=tuple_row) as cursor:
            await cursor.execute(sql, (document,))
            rows: _Rows = await cursor.fetchall()
    finally:
        connection.remove_notice_handler(on_notice)
    return rows


def _dbapi(connection: Any, sql: LiteralString, document: str) -> _Rows:
    with connection.cursor() as cursor:
        cursor.execute(sql, (document,))
        rows: _Rows = cursor.fetchall()
    return rows


async def _asyncpg(connection: Any, sql: LiteralString, document: str) -> _Rows:
    connection.add_log_listener(_on_asyncpg_notice)
    try:
        rows: _Rows = await connection.fetch(_numbered(sql), document)
    finally:
        connection.remove_log_listener(_on_asyncpg_notice)
    return rows


def _on_asyncpg_notice(_: Any, notice: Any) -> None:
    log_notice(getattr(notice, "sqlstate", None), getattr(notice, "detail", None))


def _sqlalchemy(session: Any, sql: LiteralString, document: str) -> _Rows:
    from sqlalchemy import text  # noqa: PLC0415 - only a caller with SQLAlchemy gets here

    rows: _Rows = session.execute(text(_named(sql)), {"document": document}).all()
    return rows


async def _sqlalchemy_async(session: Any, sql: LiteralString, document: str) -> _Rows:
    from sqlalchemy import text  # noqa: PLC0415 - as above

    rows: _Rows = (await session.execute(text(_named(sql)), {"document": document})).all()
    return rows


# Runners by package and class, one of which must be a base class of the caller's connection.
_SYNCHRONOUS: Final[dict[tuple[str, str], Callable[[Any, LiteralString, str], _Rows]]] = {
    ("psycopg", "Connection"): _psycopg,
    ("psycopg2", "connection"): _dbapi,
    ("sqlalchemy", "Session"): _sqlalchemy,
    ("sqlalchemy", "Connection"): _sqlalchemy,
    ("sqlalchemy", "scoped_session"): _sqlalchemy,
    ("django", "BaseDatabaseWrapper"): _dbapi,
    ("django", "ConnectionProxy"): _dbapi,
}
_ASYNCHRONOUS: Final[
    dict[tuple[str, str], Callable[[Any, LiteralString, str], Awaitable[_Rows]]]
] = {
    ("psycopg", "AsyncConnection"): _psycopg_async,
    ("asyncpg", "Connection"): _asyncpg,
    ("asyncpg", "PoolConnectionProxy"): _asyncpg,
    ("sqlalchemy", "AsyncSession"): _sqlalchemy_async,
    ("sqlalchemy", "AsyncConnection"): _sqlalchemy_async,
    ("sqlalchemy", "async_scoped_session"): _sqlalchemy_async,
}


_LIBRARIES: Final = {package for package, _ in (*_SYNCHRONOUS, *_ASYNCHRONOUS)}


def _find(connection: Any, runners: dict[tuple[str, str], Any]) -> Any:
    for base in type(connection).__mro__:
        runner = runners.get((base.__module__.partition(".")[0], base.__name__))
        if runner is not None:
            return runner
    return None


def _unsupported(
    connection: Any, others: dict[tuple[str, str], Any], kind: str, instead: str
) -> UnsupportedConnection:
    name = f"{type(connection).__module__}.{type(connection).__qualname__}"
    if _find(connection, others) is not None:
        return UnsupportedConnection(f"{name} is {kind}", hint=f"Pass it to {instead}.")
    return UnsupportedConnection(f"{name} is not a supported connection")


def _answers(rows: _Rows) -> list[Enqueued]:
    return [
        Enqueued(job if isinstance(job, UUID) else UUID(str(job)), created, state, run_at)
        for job, created, state, run_at in rows
    ]


def _started(rows: _Rows) -> StartedWorkflow:
    workflow, created, state, jobs = rows[0]
    known = workflow if isinstance(workflow, UUID) else UUID(str(workflow))
    return StartedWorkflow(known, created, state, jobs)


@contextmanager
def _driver_errors() -> Iterator[None]:
    """Raise our errors instead of the driver's, which SQLAlchemy and Django wrap."""
    try:
        yield
    except Exception as error:
        # The innermost one is the driver's own: wrappers repeat its code but lose the detail.
        cause: BaseException | None = error
        innermost = None
        while cause is not None:
            if getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None):
                innermost = cause
            cause = getattr(cause, "orig", None) or cause.__cause__
        if innermost is not None:
            raise from_driver(innermost) from error
        if type(error).__module__.partition(".")[0] in _LIBRARIES:
            # The library has no code for a connection that is closed, broken or in use.
            raise ConnectionLost(
                f"The connection cannot be used: {error}",
                hint="Pass an open connection with no other statement in progress and no failed "
                "transaction.",
            ) from error
        raise

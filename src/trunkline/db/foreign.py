"""Enqueuing on a connection or session of the caller's own, so that it commits with their data.

Connections are told by the module their class comes from: none of these libraries is imported, and
none is a dependency. One text parameter carries all jobs, so that only the placeholder differs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final
from uuid import UUID

from trunkline.db.calls.produce import ENQUEUE_MANY
from trunkline.db.notices import log_notice, on_notice
from trunkline.db.translate import from_driver
from trunkline.errors import ConnectionLost, UnsupportedConnection
from trunkline.model import Enqueued

__all__ = ["enqueue_on", "enqueue_on_async"]

_NUMBERED: Final = ENQUEUE_MANY.replace("%s", "$1")
# A colon after a name would be another parameter to SQLAlchemy, hence CAST.
_NAMED: Final = ENQUEUE_MANY.replace("%s::text::jsonb", "CAST(CAST(:jobs AS text) AS jsonb)")

_Rows = Sequence[Sequence[Any]]


def enqueue_on(connection: Any, document: str) -> list[Enqueued]:
    """Enqueue in the transaction of a synchronous connection or session."""
    run = _find(connection, _SYNCHRONOUS)
    if run is None:
        raise _unsupported(connection, _ASYNCHRONOUS, "asynchronous", "task.options(...)")
    with _driver_errors():
        return _answers(run(connection, document))


async def enqueue_on_async(connection: Any, document: str) -> list[Enqueued]:
    """Enqueue in the transaction of an asynchronous connection or session."""
    run = _find(connection, _ASYNCHRONOUS)
    if run is None:
        raise _unsupported(connection, _SYNCHRONOUS, "synchronous", "task.sync.options(...)")
    with _driver_errors():
        return _answers(await run(connection, document))


def _psycopg(connection: Any, document: str) -> _Rows:
    # The caller's row factory may be anything.
    from psycopg.rows import tuple_row  # noqa: PLC0415 - the caller has it, or is not here

    connection.add_notice_handler(on_notice)
    try:
        with connection.cursor(row_factory=tuple_row) as cursor:
            rows: _Rows = cursor.execute(ENQUEUE_MANY, (document,)).fetchall()
    finally:
        connection.remove_notice_handler(on_notice)
    return rows


async def _psycopg_async(connection: Any, document: str) -> _Rows:
    from psycopg.rows import tuple_row  # noqa: PLC0415 - as above

    connection.add_notice_handler(on_notice)
    try:
        async with connection.cursor(row_factory=tuple_row) as cursor:
            await cursor.execute(ENQUEUE_MANY, (document,))
            rows: _Rows = await cursor.fetchall()
    finally:
        connection.remove_notice_handler(on_notice)
    return rows


def _dbapi(connection: Any, document: str) -> _Rows:
    with connection.cursor() as cursor:
        cursor.execute(ENQUEUE_MANY, (document,))
        rows: _Rows = cursor.fetchall()
    return rows


async def _asyncpg(connection: Any, document: str) -> _Rows:
    connection.add_log_listener(_on_asyncpg_notice)
    try:
        rows: _Rows = await connection.fetch(_NUMBERED, document)
    finally:
        connection.remove_log_listener(_on_asyncpg_notice)
    return rows


def _on_asyncpg_notice(_: Any, notice: Any) -> None:
    log_notice(getattr(notice, "sqlstate", None), getattr(notice, "detail", None))


def _sqlalchemy(session: Any, document: str) -> _Rows:
    from sqlalchemy import text  # noqa: PLC0415 - the caller has it, or is not here

    rows: _Rows = session.execute(text(_NAMED), {"jobs": document}).all()
    return rows


async def _sqlalchemy_async(session: Any, document: str) -> _Rows:
    from sqlalchemy import text  # noqa: PLC0415 - as above

    rows: _Rows = (await session.execute(text(_NAMED), {"jobs": document})).all()
    return rows


# (package, class) to look for among the bases of what the caller passed.
_SYNCHRONOUS: Final[dict[tuple[str, str], Callable[[Any, str], _Rows]]] = {
    ("psycopg", "Connection"): _psycopg,
    ("psycopg2", "connection"): _dbapi,
    ("sqlalchemy", "Session"): _sqlalchemy,
    ("sqlalchemy", "Connection"): _sqlalchemy,
    ("sqlalchemy", "scoped_session"): _sqlalchemy,
    ("django", "BaseDatabaseWrapper"): _dbapi,
    ("django", "ConnectionProxy"): _dbapi,
}
_ASYNCHRONOUS: Final[dict[tuple[str, str], Callable[[Any, str], Awaitable[_Rows]]]] = {
    ("psycopg", "AsyncConnection"): _psycopg_async,
    ("asyncpg", "Connection"): _asyncpg,
    ("asyncpg", "PoolConnectionProxy"): _asyncpg,
    ("sqlalchemy", "AsyncSession"): _sqlalchemy_async,
    ("sqlalchemy", "AsyncConnection"): _sqlalchemy_async,
    ("sqlalchemy", "async_scoped_session"): _sqlalchemy_async,
}


_LIBRARIES: Final = {package for package, _ in (*_SYNCHRONOUS, *_ASYNCHRONOUS)}


def _find(connection: Any, known: dict[tuple[str, str], Any]) -> Any:
    for base in type(connection).__mro__:
        found = known.get((base.__module__.partition(".")[0], base.__name__))
        if found is not None:
            return found
    return None


def _unsupported(
    connection: Any, others: dict[tuple[str, str], Any], kind: str, instead: str
) -> UnsupportedConnection:
    name = f"{type(connection).__module__}.{type(connection).__qualname__}"
    if _find(connection, others) is not None:
        return UnsupportedConnection(f"{name} is {kind}", hint=f"Pass it to {instead}.")
    return UnsupportedConnection(f"{name} is no connection that is known")


def _answers(rows: _Rows) -> list[Enqueued]:
    return [
        Enqueued(job if isinstance(job, UUID) else UUID(str(job)), created, state, run_at)
        for job, created, state, run_at in rows
    ]


@contextmanager
def _driver_errors() -> Iterator[None]:
    """Errors of the engine become ours; SQLAlchemy and Django wrap those of the driver."""
    try:
        yield
    except Exception as error:
        # The innermost one is the driver's own: wrappers repeat its code and lose the detail.
        found: BaseException | None = error
        innermost = None
        while found is not None:
            if getattr(found, "sqlstate", None) or getattr(found, "pgcode", None):
                innermost = found
            found = getattr(found, "orig", None) or found.__cause__
        if innermost is not None:
            raise from_driver(innermost) from error
        if type(error).__module__.partition(".")[0] in _LIBRARIES:
            # Closed, broken, or in the middle of something else: the library has no code for it.
            raise ConnectionLost(
                f"The connection cannot be used: {error}",
                hint="Pass one that is open, with no other statement under way and no failed "
                "transaction.",
            ) from error
        raise

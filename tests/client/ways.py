"""Connections and sessions of a caller's own, of every kind that `connection=` takes.

Each gives what is to be passed, and a way to run a statement of the caller's on it, within a
transaction that commits when the context is left normally.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import asyncpg  # type: ignore[import-untyped, unused-ignore]
import django  # type: ignore[import-untyped, unused-ignore]
import psycopg
import psycopg.rows
import pytest
import sqlalchemy
import sqlalchemy.orm
from django.conf import settings  # type: ignore[import-untyped, unused-ignore]
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy.ext.asyncio import (
    AsyncSession,
    async_scoped_session,
    async_sessionmaker,
    create_async_engine,
)

from tests.support.databases import Database

__all__ = ["ASYNCHRONOUS", "BLOCKING", "by_async_psycopg", "by_psycopg", "url"]

if not settings.configured:
    settings.configure(
        USE_TZ=True, DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "x"}}
    )
    django.setup()

from django.db import connection as django_connection  # type: ignore[import-untyped, unused-ignore]
from django.db import transaction as django_transaction

_Execute = Callable[[str], Awaitable[Any]]


def parts(database: Database) -> dict[str, Any]:
    found = conninfo_to_dict(database.dsn)
    return {name: found[name] for name in ("host", "port", "user", "dbname")}


def url(database: Database, driver: str) -> sqlalchemy.URL:
    place = parts(database)
    return sqlalchemy.URL.create(
        f"postgresql+{driver}",
        username=place["user"],
        database=place["dbname"],
        query={"host": place["host"], "port": str(place["port"])},
    )


@contextmanager
def by_psycopg(database: Database) -> Iterator[tuple[Any, Callable[[str], Any]]]:
    with psycopg.connect(database.dsn) as connection:
        yield connection, connection.execute


@contextmanager
def by_psycopg_with_rows_of_its_own(
    database: Database,
) -> Iterator[tuple[Any, Callable[[str], Any]]]:
    with (
        psycopg.connect(
            database.dsn, row_factory=psycopg.rows.dict_row, autocommit=True
        ) as connection,
        connection.transaction(),
    ):
        yield connection, connection.execute


@contextmanager
def by_psycopg2(database: Database) -> Iterator[tuple[Any, Callable[[str], Any]]]:
    psycopg2 = pytest.importorskip("psycopg2")
    connection = psycopg2.connect(database.dsn)
    try:
        with connection, connection.cursor() as cursor:
            yield connection, cursor.execute
    finally:
        connection.close()


@contextmanager
def by_sqlalchemy_connection(database: Database) -> Iterator[tuple[Any, Callable[[str], Any]]]:
    engine = sqlalchemy.create_engine(url(database, "psycopg"))
    try:
        with engine.begin() as connection:
            yield connection, lambda query: connection.execute(sqlalchemy.text(query))
    finally:
        engine.dispose()


@contextmanager
def by_sqlalchemy_session(database: Database) -> Iterator[tuple[Any, Callable[[str], Any]]]:
    engine = sqlalchemy.create_engine(url(database, "psycopg"))
    try:
        with sqlalchemy.orm.Session(engine) as session, session.begin():
            yield session, lambda query: session.execute(sqlalchemy.text(query))
    finally:
        engine.dispose()


@contextmanager
def by_sqlalchemy_scoped_session(database: Database) -> Iterator[tuple[Any, Callable[[str], Any]]]:
    engine = sqlalchemy.create_engine(url(database, "psycopg"))
    session = sqlalchemy.orm.scoped_session(sqlalchemy.orm.sessionmaker(engine))
    try:
        with session.begin():
            yield session, lambda query: session.execute(sqlalchemy.text(query))
    finally:
        session.remove()
        engine.dispose()


@contextmanager
def by_django(database: Database) -> Iterator[tuple[Any, Callable[[str], Any]]]:
    place = parts(database)
    django_connection.settings_dict.update(
        NAME=place["dbname"], HOST=place["host"], PORT=place["port"], USER=place["user"]
    )

    def execute(query: str) -> None:
        with django_connection.cursor() as cursor:
            cursor.execute(query)

    try:
        with django_transaction.atomic():
            yield django_connection, execute
    finally:
        django_connection.close()


BLOCKING = [
    by_psycopg,
    by_psycopg_with_rows_of_its_own,
    by_psycopg2,
    by_sqlalchemy_connection,
    by_sqlalchemy_session,
    by_sqlalchemy_scoped_session,
    by_django,
]


@asynccontextmanager
async def by_async_psycopg(database: Database) -> AsyncIterator[tuple[Any, _Execute]]:
    async with await psycopg.AsyncConnection.connect(database.dsn) as connection:
        yield connection, connection.execute


@asynccontextmanager
async def by_asyncpg(database: Database) -> AsyncIterator[tuple[Any, _Execute]]:
    place = parts(database)
    connection = await asyncpg.connect(
        host=place["host"], port=int(place["port"]), user=place["user"], database=place["dbname"]
    )
    try:
        async with connection.transaction():
            yield connection, connection.execute
    finally:
        await connection.close()


@asynccontextmanager
async def by_asyncpg_pool(database: Database) -> AsyncIterator[tuple[Any, _Execute]]:
    place = parts(database)
    async with (
        asyncpg.create_pool(
            host=place["host"],
            port=int(place["port"]),
            user=place["user"],
            database=place["dbname"],
            min_size=1,
        ) as pool,
        pool.acquire() as connection,
        connection.transaction(),
    ):
        yield connection, connection.execute


@asynccontextmanager
async def by_async_session(database: Database, driver: str) -> AsyncIterator[tuple[Any, _Execute]]:
    engine = create_async_engine(url(database, driver))
    try:
        async with AsyncSession(engine) as session, session.begin():
            yield session, lambda query: session.execute(sqlalchemy.text(query))
    finally:
        await engine.dispose()


@asynccontextmanager
async def by_async_engine(database: Database, driver: str) -> AsyncIterator[tuple[Any, _Execute]]:
    engine = create_async_engine(url(database, driver))
    try:
        async with engine.begin() as connection:
            yield connection, lambda query: connection.execute(sqlalchemy.text(query))
    finally:
        await engine.dispose()


@asynccontextmanager
async def by_async_scoped_session(database: Database) -> AsyncIterator[tuple[Any, _Execute]]:
    engine = create_async_engine(url(database, "asyncpg"))
    session = async_scoped_session(async_sessionmaker(engine), scopefunc=asyncio.current_task)
    try:
        async with session.begin():
            yield session, lambda query: session.execute(sqlalchemy.text(query))
    finally:
        await session.remove()
        await engine.dispose()


ASYNCHRONOUS: dict[str, Callable[[Database], Any]] = {
    "psycopg": by_async_psycopg,
    "asyncpg": by_asyncpg,
    "asyncpg pool": by_asyncpg_pool,
    "AsyncSession on psycopg": lambda database: by_async_session(database, "psycopg"),
    "AsyncSession on asyncpg": lambda database: by_async_session(database, "asyncpg"),
    "AsyncConnection on psycopg": lambda database: by_async_engine(database, "psycopg"),
    "AsyncConnection on asyncpg": lambda database: by_async_engine(database, "asyncpg"),
    "async_scoped_session": by_async_scoped_session,
}

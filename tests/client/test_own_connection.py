"""Enqueuing in the caller's own transaction: with a commit the job is there, else nothing is (CP-18).

Each kind of connection is a `Way`: it begins a transaction, enqueues in it together with a row of
the caller's, and commits or rolls back.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import asyncpg
import django
import psycopg
import psycopg.rows
import pytest
import sqlalchemy
import sqlalchemy.orm
from django.conf import settings
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy.ext.asyncio import AsyncSession, async_scoped_session, create_async_engine

from tests.client.twins import Hands
from tests.support.databases import Database
from trunkline import Task, Trunkline
from trunkline.errors import PriorityOutOfRange, UnknownTask, UnsupportedConnection

if not settings.configured:
    settings.configure(
        USE_TZ=True, DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "x"}}
    )
    django.setup()

from django.db import connection as django_connection  # noqa: E402 - needs the settings above
from django.db import transaction as django_transaction  # noqa: E402

ORDERS = "create table orders (id integer primary key)"


class Rollback(Exception):
    """Ends a transaction that a context manager began."""


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


# Each gives the connection to pass, and a way to run a statement of the caller's own on it. Leaving
# the context normally commits.


@contextmanager
def by_psycopg(database: Database) -> Iterator[tuple[Any, Callable[[str], Any]]]:
    with psycopg.connect(database.dsn) as connection:
        yield connection, connection.execute  # type: ignore[arg-type]


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
        yield connection, connection.execute  # type: ignore[arg-type]


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

_Execute = Callable[[str], Awaitable[Any]]


@asynccontextmanager
async def by_async_psycopg(database: Database) -> AsyncIterator[tuple[Any, _Execute]]:
    async with await psycopg.AsyncConnection.connect(database.dsn) as connection:
        yield connection, connection.execute  # type: ignore[arg-type]


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
    session = async_scoped_session(
        sqlalchemy.ext.asyncio.async_sessionmaker(engine), scopefunc=asyncio.current_task
    )
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


@pytest.fixture
def work(app: Trunkline, hands: Hands) -> Task[..., None]:
    hands.connection.execute(ORDERS)
    hands.connection.execute("grant all on orders to public")

    @app.task
    def work(order: int) -> None: ...

    return work


class Story:
    """What is told with every kind of connection."""

    def __init__(self, hands: Hands) -> None:
        self._hands = hands

    def orders(self) -> int:
        found: int = self._hands.value("select count(*) from orders")
        return found

    def jobs(self) -> int:
        found: int = self._hands.value("select count(*) from trunkline.jobs")
        return found

    def nothing_yet(self) -> None:
        """Nobody sees the job before the commit."""
        assert self._hands.claim("early", 10).jobs == []
        assert (self.orders(), self.jobs()) == (0, 0)


@pytest.fixture
def story(hands: Hands, work: Task[..., None]) -> Story:
    return Story(hands)


@pytest.mark.parametrize("way", BLOCKING)
def test_blocking_commit_and_rollback(
    way: Any, app: Trunkline, database: Database, work: Task[..., None], story: Story, hands: Hands
) -> None:
    with app.sync:
        with pytest.raises(Rollback), way(database) as (connection, execute):
            execute("insert into orders values (1)")
            work.sync.options(connection=connection).enqueue(order=1)
            story.nothing_yet()
            raise Rollback
        assert (story.orders(), story.jobs()) == (0, 0)
        with way(database) as (connection, execute):
            execute("insert into orders values (1)")
            calls = work.sync.options(connection=connection)
            one, two = calls.enqueue_many([calls.request(order=1), calls.request(order=2)])
            story.nothing_yet()
        assert (story.orders(), story.jobs()) == (1, 2)
        assert hands.claim("w", 10).jobs == [one.id, two.id]


@pytest.mark.parametrize("way", BLOCKING)
def test_blocking_refusals_are_ours(
    way: Any, app: Trunkline, database: Database, work: Task[..., None], story: Story
) -> None:
    with app.sync:
        with pytest.raises(UnknownTask) as caught, way(database) as (connection, execute):
            execute("insert into orders values (1)")
            app.sync.jobs.enqueue("nobody", {}, connection=connection)
        assert caught.value.detail["task"] == "nobody"
        assert caught.value.hint
        with pytest.raises(PriorityOutOfRange), way(database) as (connection, _):
            work.sync.options(connection=connection, priority=99).enqueue(order=1)
    assert (story.orders(), story.jobs()) == (0, 0)


@pytest.mark.parametrize("name", ASYNCHRONOUS)
def test_asynchronous_commit_and_rollback(
    name: str, app: Trunkline, database: Database, work: Task[..., None], story: Story, hands: Hands
) -> None:
    way = ASYNCHRONOUS[name]

    async def main() -> list[Any]:
        async with app:
            with pytest.raises(Rollback):
                async with way(database) as (connection, execute):
                    await execute("insert into orders values (1)")
                    await work.options(connection=connection).enqueue(order=1)
                    story.nothing_yet()
                    raise Rollback
            assert (story.orders(), story.jobs()) == (0, 0)
            async with way(database) as (connection, execute):
                await execute("insert into orders values (1)")
                calls = work.options(connection=connection)
                made = await calls.enqueue_many([calls.request(order=1), calls.request(order=2)])
                story.nothing_yet()
            return [handle.id for handle in made]

    made = asyncio.run(main())
    assert (story.orders(), story.jobs()) == (1, 2)
    assert hands.claim("w", 10).jobs == made


@pytest.mark.parametrize("name", ASYNCHRONOUS)
def test_asynchronous_refusals_are_ours(
    name: str, app: Trunkline, database: Database, work: Task[..., None], story: Story
) -> None:
    way = ASYNCHRONOUS[name]

    async def main() -> None:
        async with app:
            with pytest.raises(UnknownTask) as caught:
                async with way(database) as (connection, execute):
                    await execute("insert into orders values (1)")
                    await app.jobs.enqueue("nobody", {}, connection=connection)
            assert caught.value.message == "unknown task"
            assert caught.value.detail["task"] == "nobody"
            assert caught.value.hint

    asyncio.run(main())
    assert (story.orders(), story.jobs()) == (0, 0)


def test_a_connection_of_the_wrong_kind_is_refused(
    app: Trunkline, database: Database, work: Task[..., None], story: Story
) -> None:
    async def main() -> None:
        async with app:
            async with by_async_psycopg(database) as (connection, _):
                with pytest.raises(UnsupportedConnection, match="is asynchronous") as caught:
                    work.sync.options(connection=connection).enqueue(order=1)
                assert "task.options" in caught.value.hint
            with by_psycopg(database) as (connection, _):
                with pytest.raises(UnsupportedConnection, match="is synchronous") as caught:
                    await work.options(connection=connection).enqueue(order=1)
                assert "task.sync.options" in caught.value.hint

    with app.sync:
        asyncio.run(main())
    assert story.jobs() == 0


def test_what_holds_no_transaction_is_refused(
    app: Trunkline, database: Database, work: Task[..., None], story: Story
) -> None:
    engine = sqlalchemy.create_engine(url(database, "psycopg"))
    with app.sync:
        for thing in (engine, database, "a string", 5):
            with pytest.raises(
                UnsupportedConnection, match="no connection that is known"
            ) as caught:
                work.sync.options(connection=thing).enqueue(order=1)
            assert caught.value.code == "unsupported_connection"
    engine.dispose()
    assert story.jobs() == 0


def test_one_call_has_one_connection(
    app: Trunkline, database: Database, work: Task[..., None], story: Story
) -> None:
    with app.sync, by_psycopg(database) as (connection, _):
        with pytest.raises(UnsupportedConnection, match="different connections"):
            app.sync.enqueue_many([work.request(1), work.options(connection=connection).request(2)])
    assert story.jobs() == 0

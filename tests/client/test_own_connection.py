"""Enqueuing in the caller's own transaction: a commit makes the job, a rollback nothing."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest
import sqlalchemy

from tests.client import ways
from tests.client.twins import Hands
from tests.support.databases import Database
from trunkline import Task, Trunkline
from trunkline.errors import PriorityOutOfRange, UnknownTask, UnsupportedConnection


class Rollback(Exception):
    """Ends a transaction that a context manager began."""


class Story:
    """An application, its task, and a table of orders that jobs belong to."""

    def __init__(self, app: Trunkline, database: Database, hands: Hands) -> None:
        self.app = app
        self.database = database
        self.hands = hands
        hands.connection.execute("create table orders (id integer primary key)")
        hands.connection.execute("grant all on orders to public")

        @app.task
        def work(order: int) -> None: ...

        self.work: Task[..., None] = work

    def expect(self, *, orders: int, jobs: int) -> None:
        assert self.hands.value("select count(*) from orders") == orders
        assert self.hands.value("select count(*) from trunkline.jobs") == jobs

    def nothing_yet(self) -> None:
        """Nobody sees the job before the commit."""
        assert self.hands.claim("early", 10).jobs == []
        self.expect(orders=0, jobs=0)


@pytest.fixture
def story(app: Trunkline, database: Database, hands: Hands) -> Story:
    return Story(app, database, hands)


@pytest.mark.parametrize("way", ways.BLOCKING)
def test_blocking_commit_and_rollback(way: Any, story: Story) -> None:
    work = story.work.sync
    with story.app.sync:
        with suppress(Rollback), way(story.database) as (connection, execute):
            execute("insert into orders values (1)")
            work.options(connection=connection).enqueue(order=1)
            story.nothing_yet()
            raise Rollback
        story.expect(orders=0, jobs=0)
        with way(story.database) as (connection, execute):
            execute("insert into orders values (1)")
            calls = work.options(connection=connection)
            one, two = calls.enqueue_many([calls.request(order=1), calls.request(order=2)])
            story.nothing_yet()
    story.expect(orders=1, jobs=2)
    assert story.hands.claim("w", 10).jobs == [one.id, two.id]


@pytest.mark.parametrize("way", ways.BLOCKING)
def test_blocking_refusals_are_ours(way: Any, story: Story) -> None:
    def enqueue(task: str, **options: Any) -> None:
        with way(story.database) as (connection, execute):
            execute("insert into orders values (1)")
            story.app.sync.jobs.enqueue(task, {}, connection=connection, **options)

    with story.app.sync:
        with pytest.raises(UnknownTask) as caught:
            enqueue("nobody")
        with pytest.raises(PriorityOutOfRange):
            enqueue("work", priority=99)
    assert caught.value.message == "unknown task"
    assert caught.value.detail["task"] == "nobody"
    assert caught.value.hint
    story.expect(orders=0, jobs=0)


@pytest.mark.parametrize("name", ways.ASYNCHRONOUS)
def test_asynchronous_commit_and_rollback(name: str, story: Story) -> None:
    way, work = ways.ASYNCHRONOUS[name], story.work

    async def main() -> list[Any]:
        async with story.app:
            with suppress(Rollback):
                async with way(story.database) as (connection, execute):
                    await execute("insert into orders values (1)")
                    await work.options(connection=connection).enqueue(order=1)
                    story.nothing_yet()
                    raise Rollback
            story.expect(orders=0, jobs=0)
            async with way(story.database) as (connection, execute):
                await execute("insert into orders values (1)")
                calls = work.options(connection=connection)
                made = await calls.enqueue_many([calls.request(order=1), calls.request(order=2)])
                story.nothing_yet()
            return [handle.id for handle in made]

    made = asyncio.run(main())
    story.expect(orders=1, jobs=2)
    assert story.hands.claim("w", 10).jobs == made


@pytest.mark.parametrize("name", ways.ASYNCHRONOUS)
def test_asynchronous_refusals_are_ours(name: str, story: Story) -> None:
    async def main() -> None:
        async with (
            story.app,
            ways.ASYNCHRONOUS[name](story.database) as (connection, execute),
        ):
            await execute("insert into orders values (1)")
            await story.app.jobs.enqueue("nobody", {}, connection=connection)

    with pytest.raises(UnknownTask) as caught:
        asyncio.run(main())
    assert caught.value.message == "unknown task"
    assert caught.value.detail["task"] == "nobody"
    assert caught.value.hint
    story.expect(orders=0, jobs=0)


def test_a_connection_of_the_wrong_kind_is_refused(story: Story) -> None:
    async def main() -> None:
        async with story.app:
            async with ways.by_async_psycopg(story.database) as (connection, _):
                with pytest.raises(UnsupportedConnection, match="is asynchronous") as caught:
                    story.work.sync.options(connection=connection).enqueue(order=1)
                assert "task.options" in caught.value.hint
            with ways.by_psycopg(story.database) as (connection, _):
                with pytest.raises(UnsupportedConnection, match="is synchronous") as caught:
                    await story.work.options(connection=connection).enqueue(order=1)
                assert "task.sync.options" in caught.value.hint

    with story.app.sync:
        asyncio.run(main())
    story.expect(orders=0, jobs=0)


def test_what_holds_no_transaction_is_refused(story: Story) -> None:
    engine = sqlalchemy.create_engine(ways.url(story.database, "psycopg"))
    with story.app.sync:
        for thing in (engine, story.database, "a string", 5):
            with pytest.raises(UnsupportedConnection, match="not a supported connection") as caught:
                story.work.sync.options(connection=thing).enqueue(order=1)
            assert caught.value.code == "unsupported_connection"
            assert "SQLAlchemy" in caught.value.hint
    engine.dispose()
    story.expect(orders=0, jobs=0)


def test_one_call_has_one_connection(story: Story) -> None:
    with story.app.sync as client, ways.by_psycopg(story.database) as (connection, _):
        other = story.work.options(connection=connection).request(2)
        with pytest.raises(UnsupportedConnection, match="different connections"):
            client.enqueue_many([story.work.request(1), other])
    story.expect(orders=0, jobs=0)

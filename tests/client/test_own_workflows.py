"""Starting a workflow in the caller's own transaction, and through both clients."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from tests.client import ways
from tests.client.twins import Hands
from tests.support.databases import Database
from trunkline import Trunkline
from trunkline.client import Workflow
from trunkline.errors import UnknownTask, UnsupportedConnection, WorkflowFailed, WorkflowTooLarge


class Rollback(Exception):
    """Ends a transaction that a context manager began."""


@pytest.fixture
def order(app: Trunkline, hands: Hands) -> Workflow:
    """A workflow of two steps, and a table of orders that it belongs to."""
    hands.connection.execute("create table orders (id integer primary key)")
    hands.connection.execute("grant all on orders to public")

    @app.task
    def first(number: int) -> int: ...  # type: ignore[empty-body]

    @app.task
    def second(number: int) -> int: ...  # type: ignore[empty-body]

    graph = app.workflow("order")
    step = graph.add(first.request(1))
    graph.add(second.request(step.result))
    return graph


def expect(hands: Hands, *, orders: int, workflows: int) -> None:
    assert hands.value("select count(*) from orders") == orders
    assert hands.value("select count(*) from trunkline.workflows") == workflows
    assert hands.value("select count(*) from trunkline.jobs") == 2 * workflows


@pytest.mark.parametrize("way", ways.BLOCKING)
def test_blocking_commit_and_rollback(
    way: Any, app: Trunkline, order: Workflow, database: Database, hands: Hands
) -> None:
    with app.sync:
        with suppress(Rollback), way(database) as (connection, execute):
            execute("insert into orders values (1)")
            order.sync.start(connection=connection)
            expect(hands, orders=0, workflows=0)
            raise Rollback
        expect(hands, orders=0, workflows=0)
        with way(database) as (connection, execute):
            execute("insert into orders values (1)")
            run = order.sync.start(connection=connection)
        expect(hands, orders=1, workflows=1)
        assert run.created
        assert [job.state for job in run.jobs()] == ["ready", "blocked"]
        assert [step.after for step in run.get().steps] == [(), ("first",)]


@pytest.mark.parametrize("name", ways.ASYNCHRONOUS)
def test_asynchronous_commit_and_rollback(
    name: str, app: Trunkline, order: Workflow, database: Database, hands: Hands
) -> None:
    way = ways.ASYNCHRONOUS[name]

    async def story() -> None:
        async with app:
            with suppress(Rollback):
                async with way(database) as (connection, execute):
                    await execute("insert into orders values (1)")
                    await order.start(connection=connection)
                    expect(hands, orders=0, workflows=0)
                    raise Rollback
            expect(hands, orders=0, workflows=0)
            async with way(database) as (connection, execute):
                await execute("insert into orders values (1)")
                await order.start(connection=connection)
            expect(hands, orders=1, workflows=1)

    asyncio.run(story())


def test_a_connection_of_the_wrong_kind_is_refused(
    app: Trunkline, order: Workflow, database: Database
) -> None:
    with app.sync, ways.by_psycopg(database) as (connection, _):
        with pytest.raises(UnsupportedConnection, match="is synchronous") as error:
            asyncio.run(order.start(connection=connection))
        assert "workflow.sync.start" in error.value.hint


def test_a_refused_workflow_leaves_nothing(app: Trunkline, order: Workflow, hands: Hands) -> None:
    with app.sync:
        other = Trunkline()

        @other.task
        def nobody() -> None: ...

        unknown = app.workflow("unknown")
        unknown.add(nobody.request())
        with pytest.raises(UnknownTask):
            unknown.sync.start()
        many = app.batch("many")
        many.add_many(app.tasks["first"].request(number) for number in range(10_001))
        with pytest.raises(WorkflowTooLarge):
            many.sync.start()
        order.sync.start()
    expect(hands, orders=0, workflows=1)


def test_the_blocking_handle_has_all_calls(app: Trunkline, order: Workflow, hands: Hands) -> None:
    with app.sync:
        run = order.sync.start()
        assert app.sync.workflows.list(state="queued")[0].id == run.id
        assert run.progress().percent == 0
        hands.batch("fail", "by hand", hands.take(), retryable=[False])
        with pytest.raises(WorkflowFailed, match="failed at first"):
            run.wait(timeout=60)
        assert run.retry().jobs == 1
        assert run.get().generation == 2
        assert run.cancel("enough").outcome == "cancelled"
        again = run.rerun()
        assert app.sync.workflows.handle(str(again.id)).get().rerun_of == run.id

"""The connections of an application: made when needed, in whatever event loop, given back."""

import asyncio
import os
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.client.twins import Hands, Twin
from tests.support.databases import Database
from tests.support.servers import Server
from tests.support.waiting import until
from trunkline import Trunkline, embedded
from trunkline.errors import SchemaMissing


@pytest.fixture
def app(database: Database) -> Trunkline:
    app = Trunkline(database.dsn, connections=3)

    @app.task
    def work(number: int) -> int:
        return number

    return app


def connections(hands: Hands) -> int:
    """How many sessions the application has."""
    found: int = hands.value(
        "select count(*) from pg_stat_activity where datname = current_database()"
        " and application_name = 'trunkline'"
    )
    return found


def test_nothing_is_connected_before_it_is_needed(hands: Hands, app: Trunkline) -> None:
    app.tasks["work"].request(1)
    app.tasks["work"].sync.options(priority=5)
    assert connections(hands) == 0
    Trunkline("host=nowhere.invalid")


def test_closing_gives_every_connection_back_and_is_not_the_end(twin: Twin, hands: Hands) -> None:
    work = twin.of(twin.app.tasks["work"])
    twin(work.enqueue(1))
    assert connections(hands) >= 1
    twin(twin.client.close())
    until(lambda: connections(hands) == 0, "the connections are closed")
    twin(twin.client.close())
    twin(work.enqueue(2))
    assert len(twin(twin.jobs.list())) == 2


def test_one_application_serves_one_event_loop_after_the_other(
    hands: Hands, app: Trunkline
) -> None:
    work = app.tasks["work"]

    async def enqueue(number: int) -> None:
        await work.enqueue(number)

    # As a script with several asyncio.run does, or a test-suite with a loop for each test.
    for number in range(3):
        asyncio.run(enqueue(number))

    async def close() -> int:
        async with app:
            return len(await app.jobs.list())

    assert asyncio.run(close()) == 3
    until(lambda: connections(hands) == 0, "connections of ended loops are gone")


def test_one_application_serves_two_event_loops_in_turn(app: Trunkline) -> None:
    work = app.tasks["work"]

    async def enqueue() -> None:
        await work.enqueue(1)

    with asyncio.Runner() as one, asyncio.Runner() as other:
        for _ in range(3):
            one.run(enqueue())
            other.run(enqueue())
        assert len(one.run(app.jobs.list())) == 6
        other.run(app.close())
        one.run(app.close())


def test_event_loops_in_threads_and_the_blocking_twin_at_once(app: Trunkline) -> None:
    work = app.tasks["work"]

    def in_a_loop(number: int) -> None:
        async def main() -> None:
            await work.enqueue(number)

        asyncio.run(main())

    with ThreadPoolExecutor(4) as pool, app.sync:
        waiting: list[Future[Any]] = [pool.submit(in_a_loop, number) for number in range(4)]
        waiting += [pool.submit(work.sync.enqueue, number) for number in range(20)]
        for one in waiting:
            one.result(60)
        assert len(app.sync.jobs.list()) == 24


def test_more_callers_than_connections_take_turns(app: Trunkline, hands: Hands) -> None:
    async def main() -> int:
        async with app:
            await asyncio.gather(*(app.tasks["work"].enqueue(n) for n in range(30)))
            assert connections(hands) <= 3
            return len(await app.jobs.list())

    assert asyncio.run(main()) == 30


def test_a_broken_connection_is_replaced(
    twin: Twin, hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backend that died while it was idle is noticed before it is used."""
    # As if a while had passed since its last use.
    monkeypatch.setattr("trunkline.db.connect._FRESH", 0.0)
    monkeypatch.setattr("trunkline.db.wires._FRESH", 0.0)
    twin(twin.jobs.list())
    hands.connection.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where datname = current_database() and application_name = 'trunkline'"
    )
    until(lambda: connections(hands) == 0, "the backends are gone")
    assert twin(twin.jobs.list()) == []


def test_somebody_elses_database_gets_no_schema_unasked(server: Server, database: Database) -> None:
    with psycopg.connect(server.dsn("postgres", superuser=True), autocommit=True) as admin:
        admin.execute(f"create database {database.name}_bare owner trunkline_installer")
        try:
            bare = Trunkline(server.dsn(f"{database.name}_bare"))
            with bare.sync, pytest.raises(SchemaMissing) as caught:
                bare.sync.jobs.list()
            assert "trunkline schema install" in caught.value.hint
        finally:
            admin.execute(f"drop database {database.name}_bare with (force)")


def test_an_embedded_database_is_prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a connection string: a server, a database and a schema, and nothing to set up."""
    for name in [name for name in os.environ if name.startswith("TRUNKLINE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TRUNKLINE_HOME", str(tmp_path))
    app = Trunkline()

    @app.task
    def work() -> None: ...

    async def main() -> Any:
        async with app:
            return await (await work.enqueue()).get()

    assert asyncio.run(main()).state == "ready"
    assert not embedded.status(tmp_path).running
    with app.sync:
        assert len(app.sync.jobs.list()) == 1
        assert embedded.status(tmp_path).running
    assert not embedded.status(tmp_path).running


def test_an_application_can_be_led_elsewhere_for_a_while(
    twin: Twin, hands: Hands, server: Server, template: str
) -> None:
    from tests.support import databases  # noqa: PLC0415 - a second database is needed only here

    work = twin.of(twin.app.tasks["work"])
    twin(work.enqueue(1))
    with databases.fresh(server, template) as other:
        with twin.app.connect_to(other.dsn):
            assert twin.app.dsn == other.dsn
            assert twin(twin.jobs.list()) == []
            # The task is made known there too.
            twin(work.enqueue(2))
            assert [job.task for job in twin(twin.jobs.list())] == ["work"]
            twin(twin.client.close())
        assert [twin(twin.jobs.get(job.id)).payload for job in twin(twin.jobs.list())] == [
            {"number": 1}
        ]
    assert hands.value("select count(*) from trunkline.jobs") == 1

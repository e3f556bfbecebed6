"""Keys of requests in the client: what a repeated one gets, and what is logged."""

import asyncio
import logging
from typing import Any
from uuid import uuid4

import pytest

from tests.client import ways
from tests.client.twins import Twin
from tests.support.databases import Database
from trunkline import Task, Trunkline
from trunkline.errors import IdempotencyMismatch


@pytest.fixture
def send(app: Trunkline) -> Task[..., None]:
    @app.task
    def send(to: str, prices: list[float] | None = None) -> None: ...

    return send


@pytest.fixture
def pair(app: Trunkline) -> tuple[Task[..., None], Task[..., None]]:
    """Two tasks of one profile; with new names, since a pair is logged once an hour."""
    suffix = uuid4().hex

    @app.task(name=f"stamp-{suffix}", profile="evidence")
    def stamp(document: str) -> None: ...

    @app.task(name=f"anchor-{suffix}", profile="evidence")
    def anchor(document: str) -> None: ...

    return stamp, anchor


def warnings(log: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()
        for record in log.records
        if (record.name, record.levelno) == ("trunkline.client", logging.WARNING)
    ]


def test_a_key_with_another_payload_is_refused(twin: Twin, send: Task[..., None]) -> None:
    calls = twin.of(send).options(idempotency_key="order 1")
    first = twin(calls.enqueue(to="ann", prices=[1.0, 2.5]))
    again = twin(calls.options(priority=9, delay="1h").enqueue("ann", prices=[1, 2.5]))
    assert (again.id, again.created) == (first.id, False)
    with pytest.raises(IdempotencyMismatch) as caught:
        twin(calls.enqueue(to="bob", prices=[1.0, 2.5]))
    assert caught.value.detail["differs"] == ["payload"]
    assert caught.value.detail["job"] == str(first.id)
    assert "bob" not in str(caught.value.detail)
    assert "new key" in caught.value.hint
    assert len(twin(twin.jobs.list())) == 1


def test_a_set_is_the_same_payload_in_any_order(twin: Twin, app: Trunkline) -> None:
    @app.task
    def mark(numbers: set[int], names: dict[int, str] | None = None) -> None: ...

    one, two = {0, 8}, {8, 0}
    assert list(one) != list(two), "their order in memory differs"
    calls = twin.of(mark).options(idempotency_key="k")
    assert twin(calls.enqueue(numbers=one)).id == twin(calls.enqueue(numbers=two)).id
    by_name = [
        twin(twin.jobs.enqueue("mark", {"numbers": numbers}, idempotency_key="by name"))
        for numbers in (one, two)
    ]
    assert [handle.created for handle in by_name] == [True, False]
    # What cannot be sorted is still taken.
    other = calls.options(idempotency_key="names")
    assert twin(other.enqueue(numbers=one, names={2: "b", 1: "a"})).created
    assert not twin(other.enqueue(numbers=one, names={1: "a", 2: "b"})).created


def test_requests_of_one_batch_share_a_key_if_they_are_equal(
    twin: Twin, send: Task[..., None]
) -> None:
    calls = twin.of(send).options(idempotency_key="order 1")
    one, two = twin(twin.client.enqueue_many([calls.request("ann"), calls.request(to="ann")]))
    assert (one.id, one.created, two.created) == (two.id, True, False)
    with pytest.raises(IdempotencyMismatch) as caught:
        twin(twin.client.enqueue_many([calls.request("ann"), calls.request("bob")]))
    assert (caught.value.detail["index"], caught.value.detail["differs"]) == (1, ["payload"])


@pytest.mark.parametrize("way", ways.BLOCKING)
def test_a_mismatch_on_a_blocking_connection_is_ours(
    way: Any, app: Trunkline, send: Task[..., None], database: Database
) -> None:
    with app.sync:
        calls = send.sync.options(idempotency_key="order 1")
        first = calls.enqueue(to="ann")
        with way(database) as (connection, _):
            own = calls.options(connection=connection)
            assert own.enqueue(to="ann").id == first.id
        with pytest.raises(IdempotencyMismatch) as caught, way(database) as (connection, _):
            calls.options(connection=connection).enqueue(to="bob")
        assert caught.value.detail["differs"] == ["payload"]


@pytest.mark.parametrize("name", ways.ASYNCHRONOUS)
def test_a_mismatch_on_an_asynchronous_connection_is_ours(
    name: str, app: Trunkline, send: Task[..., None], database: Database
) -> None:
    async def main() -> None:
        calls = send.options(idempotency_key="order 1")
        async with app:
            await calls.enqueue(to="ann")
            async with ways.ASYNCHRONOUS[name](database) as (connection, _):
                await calls.options(connection=connection).enqueue(to="bob")

    with pytest.raises(IdempotencyMismatch) as caught:
        asyncio.run(main())
    assert caught.value.detail["differs"] == ["payload"]


def test_a_unique_key_belongs_to_a_task_outside_a_profile(
    twin: Twin, app: Trunkline, send: Task[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    @app.task
    def other(to: str) -> None: ...

    first = twin(twin.of(send).options(unique_key="ann").enqueue(to="ann"))
    second = twin(twin.of(other).options(unique_key="ann").enqueue(to="ann"))
    assert (second.created, second.id != first.id) == (True, True)
    assert not twin(twin.of(other).options(unique_key="ann").enqueue(to="ann")).created
    assert warnings(caplog) == []


def test_a_job_of_another_task_of_the_profile_is_logged_once(
    twin: Twin,
    pair: tuple[Task[..., None], Task[..., None]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    stamp, anchor = pair
    first = twin(twin.of(stamp).options(unique_key="d").enqueue(document="d"))
    again = twin(twin.of(stamp).options(unique_key="d").enqueue(document="d"))
    assert (again.id, warnings(caplog)) == (first.id, [])
    for _ in range(3):
        other = twin(twin.of(anchor).options(unique_key="d").enqueue(document="d"))
        assert (other.id, other.created) == (first.id, False)
        # The handle has the task of the job, also where nothing is logged any more.
        assert (other.task, again.task) == (stamp.name, stamp.name)
        assert repr(other) == f"<job {first.id} of {stamp.name}>"
    (line,) = warnings(caplog)
    assert line.startswith(f"enqueuing {anchor.name} returned job {first.id} of task {stamp.name}")
    assert "profile evidence" in line


@pytest.mark.parametrize("name", ["psycopg", "asyncpg"])
def test_a_job_of_another_task_is_logged_on_a_connection_of_the_caller(
    name: str,
    app: Trunkline,
    pair: tuple[Task[..., None], Task[..., None]],
    database: Database,
    caplog: pytest.LogCaptureFixture,
) -> None:
    stamp, anchor = pair

    async def main() -> None:
        async with app:
            await stamp.options(unique_key="d").enqueue(document="d")
            async with ways.ASYNCHRONOUS[name](database) as (connection, _):
                calls = anchor.options(unique_key="d", connection=connection)
                assert (await calls.enqueue(document="d")).task == stamp.name

    asyncio.run(main())
    assert len(warnings(caplog)) == 1


def test_a_job_of_another_task_is_logged_on_a_blocking_connection_of_the_caller(
    app: Trunkline,
    pair: tuple[Task[..., None], Task[..., None]],
    database: Database,
    caplog: pytest.LogCaptureFixture,
) -> None:
    stamp, anchor = (task.sync for task in pair)
    with app.sync, ways.by_psycopg(database) as (connection, _):
        stamp.options(unique_key="d").enqueue(document="d")
        calls = anchor.options(unique_key="d", connection=connection)
        assert calls.enqueue(document="d").task == pair[0].name
    assert len(warnings(caplog)) == 1


def test_a_batch_of_a_profile_shares_a_key_and_its_handles_have_the_real_task(
    twin: Twin, pair: tuple[Task[..., None], Task[..., None]]
) -> None:
    requests = [
        twin.of(task).options(unique_key="d").request(document="d")
        for task in (*pair, *reversed(pair))
    ]
    handles = twin(twin.client.enqueue_many(requests))
    (job,) = {handle.id for handle in handles}
    assert {handle.task for handle in handles} == {twin(twin.jobs.get(job)).task}

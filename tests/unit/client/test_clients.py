"""What a client asks of the engine, with an engine that is made up."""

import asyncio
import json
from collections.abc import Coroutine
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.unit.client.engine import AT, Engine
from trunkline import Trunkline
from trunkline.client._async.jobs import AsyncJobHandle
from trunkline.db.pool import AsyncPool
from trunkline.errors import (
    InvalidArgument,
    PayloadMismatch,
    UnknownJob,
    UnknownTask,
    UnsupportedConnection,
)
from trunkline.model import JobState


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    return Engine(monkeypatch)


@pytest.fixture
def app() -> Trunkline:
    made = Trunkline("postgresql://nobody@nowhere/none")

    @made.task
    async def one(a: int) -> int:
        return a

    @made.task(aliases=["old"])
    async def two() -> None: ...

    return made


def _run(story: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(story, 60))


def test_a_task_is_registered_before_its_first_job_and_once(engine: Engine, app: Trunkline) -> None:
    async def story() -> None:
        one = app.tasks["one"]
        handle = await one.enqueue(5)
        assert engine.calls[1] == ("enqueue", ("one", '{"a":5}'))
        assert engine.taken() == ["register_tasks", "enqueue"]
        assert (handle.task, handle.created, handle.state) == ("one", True, JobState.READY)
        assert handle.run_at == AT
        await one.enqueue(6)
        assert engine.taken() == ["enqueue"]
        # Several of one task that say nothing are one short call.
        handles = await one.enqueue_many([one.request(a) for a in (3, 1, 2)])
        assert engine.calls == [("enqueue_batch", ("one", '[{"a":3},{"a":1},{"a":2}]'))]
        assert engine.taken() == ["enqueue_batch"]
        assert len({handle.id for handle in handles}) == 3
        assert all(isinstance(handle.id, UUID) for handle in handles)
        assert {(h.state, h.run_at, h.created) for h in handles} == {(JobState.READY, AT, True)}
        # Options, or several tasks, take the long way.
        with_options = await one.options(queue="q").enqueue(5)
        assert with_options.state is JobState.SCHEDULED
        assert engine.taken() == ["enqueue_many"]
        two = app.tasks["two"]
        mixed = await app.enqueue_many([two.request(), one.request(1)])
        assert [handle.task for handle in mixed] == ["two", "one"]
        assert engine.taken() == ["register_tasks", "enqueue_many"]
        assert await app.enqueue_many([]) == []
        assert engine.taken() == []
        # One request may have options where the others have none.
        await one.enqueue_many([one.request(1), one.options(priority=1).request(2)])
        assert engine.taken() == ["enqueue_many"]

    _run(story())


def test_names_that_the_application_does_not_know_are_not_registered(
    engine: Engine, app: Trunkline
) -> None:
    async def story() -> None:
        handle = await app.jobs.enqueue("elsewhere", {"x": 1}, queue="q")
        assert handle.task == "elsewhere"
        assert handle.decode_result(7) == 7
        assert engine.taken() == ["enqueue_many"]
        await app.jobs.enqueue("old")
        assert [name for name, _ in engine.calls] == ["register_tasks", "enqueue_many"]
        (policy,) = json.loads(engine.calls[0][1][0])
        assert (policy["task"], policy["alias_of"]) == ("old", "two")
        with pytest.raises(PayloadMismatch, match=r"^The payload of t is not JSON: object is not"):
            await app.jobs.enqueue("t", {"x": object()})
        engine.taken()
        await app.jobs.enqueue("old", {"s": {30, 1, 200}}, idempotency_key="k")
        assert '"s":[1,30,200]' in engine.calls[-1][1][0]

    _run(story())


def test_options_for_all_do_not_replace_those_of_one(engine: Engine, app: Trunkline) -> None:
    async def story() -> None:
        one = app.tasks["one"]
        requests = [one.request(1), one.options(queue="own", priority=0).request(2)]
        await one.options(queue="all", priority=5, tenant="x").enqueue_many(requests)
        jobs = json.loads(engine.calls[-1][1][0])
        found = [(job["queue"], job["priority"], job["tenant"]) for job in jobs]
        assert found == [("all", 5, "x"), ("own", 0, "x")]

    _run(story())


def test_what_is_no_list_of_requests_is_refused(engine: Engine, app: Trunkline) -> None:
    one: Any = app.tasks["one"]
    mistakes: list[Any] = [5, one, [5], [one.request(1), None], one.request(1), "ab"]
    for wrong in mistakes:
        with pytest.raises(InvalidArgument) as refused:
            _run(app.enqueue_many(wrong))
        assert refused.value.message == "enqueue_many takes a list of requests"
        assert refused.value.hint == (
            "Create each with task.request(...), for example [send.request(to=name)]."
        )


def test_one_call_has_one_connection(engine: Engine, app: Trunkline) -> None:
    one = app.tasks["one"]
    mine, yours = object(), object()
    for pair in ((mine, yours), (mine, None)):
        requests = [one.options(connection=which).request(1) for which in pair]
        with pytest.raises(UnsupportedConnection) as refused:
            _run(app.enqueue_many(requests))
        assert str(refused.value) == "Requests of one call name different connections"
    with pytest.raises(UnsupportedConnection, match="is not a supported connection"):
        _run(app.enqueue_many([one.options(connection=mine).request(1)] * 2))


def test_an_unknown_name_is_refused_with_the_server(engine: Engine, app: Trunkline) -> None:
    def unknown(*_: Any) -> Any:
        raise UnknownTask("unknown task", detail={"task": "t"})

    engine.answers["enqueue_many"] = unknown
    with pytest.raises(UnknownTask) as refused:
        _run(app.jobs.enqueue("t", queue="q"))
    assert refused.value.detail == {"task": "t", "server": "h:1/d"}
    job = uuid4()
    engine.answers["job"] = lambda *_: None
    with pytest.raises(UnknownJob) as missing:
        _run(app.jobs.get(job))
    assert missing.value.detail == {"job": str(job), "server": "h:1/d"}
    assert "retention" in missing.value.hint


def test_jobs_are_listed_by_what_is_given(engine: Engine, app: Trunkline) -> None:
    engine.answers["list_jobs"] = lambda *_: []
    job = uuid4()
    for state, sent in (
        (None, None),
        ("dead", ["dead"]),
        (JobState.READY, ["ready"]),
        (["running", JobState.DEAD], ["running", "dead"]),
    ):
        _run(app.jobs.list(state=state, task="t", queue="q", tenant="x", limit=7, before=str(job)))
        assert engine.calls[-1][1] == (sent, "t", "q", "x", 7, job)
    _run(app.jobs.list())
    assert engine.calls[-1][1] == (None, None, None, None, 100, None)
    for wrong in ("nothing", ["dead", "nothing"]):
        with pytest.raises(InvalidArgument) as refused:
            _run(app.jobs.list(state=wrong))
        assert refused.value.message == "unknown state"
        assert refused.value.hint.startswith("Pass one of ")
        assert "nothing" in refused.value.detail["state"]
    for no_id in ("5", 5, None):
        with pytest.raises(InvalidArgument) as refused:
            _run(app.jobs.get(no_id))  # type: ignore[arg-type]
        assert refused.value.message == "a job id is not a UUID"
        assert refused.value.detail == {"job": repr(no_id)}


def test_changes_name_the_job_however_it_is_given(engine: Engine, app: Trunkline) -> None:
    engine.answers |= dict.fromkeys(("cancel", "retry", "explain"), lambda *_: None)

    async def story() -> None:
        handle: AsyncJobHandle[Any] = await app.tasks["two"].enqueue()
        engine.taken()
        for job in (handle, handle.id, str(handle.id)):
            await app.jobs.cancel(job, "why")
            await app.jobs.retry(job)
            await app.jobs.explain(job)
        await handle.cancel("why")
        assert engine.calls == [
            ("cancel", (handle.id, "why")),
            ("retry", (handle.id,)),
            ("explain", (handle.id,)),
        ] * 3 + [("cancel", (handle.id, "why"))]

    _run(story())


def test_a_block_closes_the_connections(monkeypatch: pytest.MonkeyPatch, app: Trunkline) -> None:
    closed: list[int] = []

    async def close(_: AsyncPool) -> None:
        closed.append(1)

    monkeypatch.setattr(AsyncPool, "close", close)

    async def story() -> None:
        async with app as same:
            assert same is app
        async with app._client:  # noqa: SLF001
            assert closed == [1]

    _run(story())
    assert closed == [1, 1]


def test_another_database_is_used_within_a_block(
    engine: Engine, app: Trunkline, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[AsyncPool] = []

    def abandon(pool: AsyncPool) -> None:
        left.append(pool)

    monkeypatch.setattr(AsyncPool, "abandon", abandon)

    async def story() -> None:
        await app.tasks["one"].enqueue(1)
        engine.taken()
        with app.connect_to("postgresql://other@h/d", listen_dsn="postgresql://l@h/d") as same:
            assert same is app
            assert (app.dsn, app.listen_dsn) == ("postgresql://other@h/d", "postgresql://l@h/d")
            await app.tasks["one"].enqueue(1)
            # It knows nothing of the tasks yet.
            assert engine.taken() == ["register_tasks", "enqueue"]
        assert len(left) == 1
        assert (app.dsn, app.listen_dsn) == ("postgresql://nobody@nowhere/none", None)
        await app.tasks["one"].enqueue(1)
        assert engine.taken() == ["enqueue"]

    _run(story())

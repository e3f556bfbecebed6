"""What a client asks of the engine, with an engine that is made up."""

import asyncio
import json
import re
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest

from trunkline import Trunkline
from trunkline.client._async.jobs import AsyncJobHandle
from trunkline.db.pool import AsyncPool
from trunkline.errors import (
    ConnectionLost,
    DatabaseProblem,
    DatabaseUnreachable,
    InvalidArgument,
    JobCancelled,
    JobFailed,
    PayloadMismatch,
    TransactionConflict,
    UnknownJob,
    UnknownTask,
    UnsupportedConnection,
    WaitTimeout,
)
from trunkline.model import Enqueued, EnqueuedBatch, JobState

_AT = datetime(2026, 5, 1, tzinfo=UTC)
_FUNCTION = re.compile(r"trunkline\.(\w+)\(")


class Engine:
    """Answers calls by the name of their function."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.patience: list[float] = []
        self.answers: dict[str, Callable[..., Any]] = {
            "register_tasks": lambda _: None,
            "enqueue": lambda *_: Enqueued(uuid4(), True, "ready", _AT),
            "enqueue_batch": lambda _, jobs: EnqueuedBatch(
                [uuid4().bytes for _ in json.loads(jobs)], "ready", _AT
            ),
            "enqueue_many": lambda jobs: [
                Enqueued(uuid4(), True, "scheduled", _AT) for _ in json.loads(jobs)
            ],
        }
        engine = self

        async def run(_: AsyncPool, call: Any, patience: float = 30.0) -> Any:
            found = _FUNCTION.search(call.sql)
            assert found is not None
            engine.calls.append((found[1], tuple(call.parameters)))
            engine.patience.append(patience)
            return engine.answers[found[1]](*call.parameters)

        monkeypatch.setattr(AsyncPool, "run", run)
        monkeypatch.setattr(AsyncPool, "address", property(lambda _: "h:1/d"))

    def taken(self) -> list[str]:
        names = [name for name, _ in self.calls]
        self.calls.clear()
        return names


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
        assert handle.run_at == _AT
        await one.enqueue(6)
        assert engine.taken() == ["enqueue"]
        # Several of one task that say nothing are one short call.
        handles = await one.enqueue_many([one.request(a) for a in (3, 1, 2)])
        assert engine.calls == [("enqueue_batch", ("one", '[{"a":3},{"a":1},{"a":2}]'))]
        assert engine.taken() == ["enqueue_batch"]
        assert len({handle.id for handle in handles}) == 3
        assert all(isinstance(handle.id, UUID) for handle in handles)
        assert {(h.state, h.run_at, h.created) for h in handles} == {(JobState.READY, _AT, True)}
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
            "Make each with task.request(...), for example [send.request(to=name)]."
        )


def test_one_call_has_one_connection(engine: Engine, app: Trunkline) -> None:
    one = app.tasks["one"]
    mine, yours = object(), object()
    for pair in ((mine, yours), (mine, None)):
        requests = [one.options(connection=which).request(1) for which in pair]
        with pytest.raises(UnsupportedConnection) as refused:
            _run(app.enqueue_many(requests))
        assert str(refused.value) == "Requests of one call name different connections"
    with pytest.raises(UnsupportedConnection, match="is no connection that is known"):
        _run(app.enqueue_many([one.options(connection=mine).request(1)] * 2))


def test_an_unknown_name_is_told_with_the_server(engine: Engine, app: Trunkline) -> None:
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
        assert refused.value.hint.startswith("One of ")
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


def _job(state: JobState, **fields: Any) -> Any:
    values = {"id": UUID(int=1), "reason": "r", "last_error": {"m": 1}, "errors": (), "result": 5}
    return SimpleNamespace(state=state, **(values | fields))


class Time:
    """Time that passes only by sleeping."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.pauses: list[float] = []
        module = "trunkline.client._async.jobs"
        monkeypatch.setattr(f"{module}.time", self)
        monkeypatch.setattr(f"{module}.asyncio", self)
        monkeypatch.setattr(f"{module}.random", self)

    def monotonic(self) -> float:
        return self.now

    def uniform(self, _low: float, _high: float) -> float:
        return 1.0

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    return Time(monkeypatch)


def test_a_wait_looks_often_at_first_and_then_every_half_second(
    engine: Engine, app: Trunkline, time: Time
) -> None:
    looks = iter([_job(JobState.RUNNING)] * 14 + [_job(JobState.COMPLETED)])
    engine.answers["job"] = lambda _: next(looks)
    assert _run(app.jobs.wait(uuid4())) == 5
    assert time.pauses[:3] == pytest.approx([0.005, 0.0075, 0.01125])
    assert time.pauses[-2:] == [0.5, 0.5]
    assert len(time.pauses) == 14
    assert set(engine.patience) == {30.0}


def test_a_handle_decodes_its_result(engine: Engine, app: Trunkline, time: Time) -> None:
    engine.answers["job"] = lambda _: _job(JobState.COMPLETED)

    async def story() -> None:
        handle = await app.tasks["one"].enqueue(1)
        assert await handle.wait() == 5
        assert await app.jobs.wait(handle.id) == 5
        assert (await handle.get()).result == 5
        engine.answers["job"] = lambda _: _job(JobState.COMPLETED, result="x")
        with pytest.raises(Exception, match="int"):
            await handle.wait()
        assert await app.jobs.wait(handle.id) == "x"

    _run(story())


def test_a_wait_raises_what_became_of_the_job(engine: Engine, app: Trunkline, time: Time) -> None:
    engine.answers["job"] = lambda _: _job(JobState.CANCELLED)
    with pytest.raises(JobCancelled, match="r"):
        _run(app.jobs.wait(uuid4()))
    engine.answers["job"] = lambda _: _job(JobState.DEAD)
    with pytest.raises(JobFailed):
        _run(app.jobs.wait(uuid4()))


def test_a_wait_ends_at_its_time_and_looks_once_more(
    engine: Engine, app: Trunkline, time: Time
) -> None:
    engine.answers["job"] = lambda _: _job(JobState.READY)
    job = uuid4()
    with pytest.raises(WaitTimeout) as over:
        _run(app.jobs.wait(job, "2s"))
    assert sum(time.pauses) == pytest.approx(2.0)
    assert str(job) in str(over.value)
    assert "h:1/d" in str(over.value) + str(vars(over.value))
    assert engine.patience[0] == pytest.approx(2.0)
    assert engine.patience[-1] == pytest.approx(0.1)
    engine.patience.clear()
    with pytest.raises(WaitTimeout):
        _run(app.jobs.wait(job, 100))
    assert engine.patience[0] == 30.0


@pytest.mark.parametrize(
    "error", [ConnectionLost("x"), DatabaseUnreachable("x"), TransactionConflict("x")]
)
def test_a_server_that_is_away_does_not_end_a_wait(
    engine: Engine, app: Trunkline, time: Time, error: Exception
) -> None:
    looks = iter([error, error, _job(JobState.COMPLETED)])

    def look(_: UUID) -> Any:
        found = next(looks)
        if isinstance(found, Exception):
            raise found
        return found

    engine.answers["job"] = look
    assert _run(app.jobs.wait(uuid4(), 60)) == 5


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ConnectionLost("x"), WaitTimeout),
        (DatabaseUnreachable("x"), DatabaseUnreachable),
        (DatabaseProblem("x"), DatabaseProblem),
    ],
)
def test_a_server_that_stays_away_ends_a_wait_at_its_time(
    engine: Engine, app: Trunkline, time: Time, error: Exception, expected: type[Exception]
) -> None:
    def look(_: UUID) -> Any:
        raise error

    engine.answers["job"] = look
    with pytest.raises(expected):
        _run(app.jobs.wait(uuid4(), 1))
    waits = not isinstance(error, DatabaseProblem) or isinstance(error, ConnectionLost)
    assert bool(time.pauses) is waits


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

"""Waiting for a job: how often a client looks, and what ends the wait."""

import asyncio
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.unit.client.engine import Engine
from trunkline import Trunkline
from trunkline.client._async.jobs import AsyncJobs
from trunkline.errors import (
    ConnectionLost,
    DatabaseProblem,
    DatabaseUnreachable,
    JobCancelled,
    JobFailed,
    TransactionConflict,
    WaitTimeout,
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


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch, time: Time) -> list[float | None]:
    """Until when a wait followed the job, instead of asking; each time it takes a second."""
    ends: list[float | None] = []

    async def until_final(_jobs: AsyncJobs, _job: UUID, end: float | None) -> None:
        ends.append(end)
        time.now = time.now + 1.0 if end is None else min(time.now + 1.0, end)

    monkeypatch.setattr(AsyncJobs, "_until_final", until_final)
    return ends


def test_a_wait_polls_often_at_first_and_then_follows_the_job(
    engine: Engine, app: Trunkline, time: Time, followed: list[float | None]
) -> None:
    looks = iter([_job(JobState.RUNNING)] * 8 + [_job(JobState.COMPLETED)])
    engine.answers["job"] = lambda _: next(looks)
    assert _run(app.jobs.wait(uuid4())) == 5
    assert time.pauses[:3] == pytest.approx([0.005, 0.0075, 0.01125])
    # For the first tenth of a second.
    assert 0.1 < sum(time.pauses) < 0.2
    assert len(time.pauses) + len(followed) == 8
    assert followed == [None, None]
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


def test_a_wait_polls_once_more_when_its_time_ends(
    engine: Engine, app: Trunkline, time: Time, followed: list[float | None]
) -> None:
    engine.answers["job"] = lambda _: _job(JobState.READY)
    job = uuid4()
    with pytest.raises(WaitTimeout) as over:
        _run(app.jobs.wait(job, "2s"))
    assert time.now == pytest.approx(102.0)
    assert followed == pytest.approx([102.0] * 2)
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

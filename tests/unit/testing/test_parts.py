"""Parts of the sandbox without a server: finding jobs, outcomes of attempts, its server."""

import asyncio
from contextlib import nullcontext
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from trunkline import Trunkline
from trunkline.db import disposable
from trunkline.errors import (
    DrainUnfinished,
    JobFailed,
    JobNotRunnable,
    PayloadMismatch,
    SandboxMisused,
    UnknownTask,
)
from trunkline.model import Cancel, JobState, Snooze
from trunkline.testing import AsyncSandbox, Sandbox, base, server
from trunkline.testing.base import Drained
from trunkline.testing.expectations import Expectation, listing
from trunkline.testing.serial_worker import Attempt, SerialWorker
from trunkline.worker.report import End, Report

_NOW = datetime(2026, 5, 1, 12, 30, 15, tzinfo=UTC)


def _job(task: str = "t", payload: Any = None, **fields: Any) -> Any:
    values: dict[str, Any] = {
        "id": UUID(int=1),
        "task": task,
        "payload": payload,
        "state": JobState.READY,
        "queue": "q",
        "priority": 0,
        "tenant": None,
        "failures": 0,
        "run_at": _NOW,
        "reason": None,
        "last_error": None,
        "errors": (),
        "result": None,
    }
    return SimpleNamespace(**(values | fields))


@pytest.fixture
def app() -> Trunkline:
    made = Trunkline("postgresql://nobody@nowhere/none")

    @made.task(aliases=["old"])
    def work(a: int, b: str = "x", c: float | None = None) -> int:
        return a

    @made.task
    def bare() -> None: ...

    return made


def test_jobs_are_found_in_their_order_by_names_and_parts(app: Trunkline) -> None:
    work = app.tasks["work"]
    jobs = [
        _job("work", {"a": 3}),
        _job("old", {"a": 1, "b": "y"}),
        _job("work", {"a": 1, "b": "x"}),
        _job("bare"),
    ]
    assert Expectation(work, {}).among(jobs) == jobs[:3]
    assert Expectation(work, {"a": 1}).among(jobs) == jobs[1:3]
    # What was left out is its default.
    assert Expectation(work, {"b": "x"}).among(jobs) == [jobs[0], jobs[2]]
    assert Expectation(work, {"c": None}).among(jobs) == jobs[:3]
    assert Expectation("work", {"b": "x"}).among(jobs) == [jobs[2]]
    assert Expectation("old", {}).among(jobs) == [jobs[1]]
    assert Expectation(app.tasks["bare"], {}).among(jobs) == [jobs[3]]


@pytest.mark.parametrize(
    ("payload", "part", "fits"),
    [
        ({"x": {"y": 1, "z": 2}}, {"x": {"y": 1}}, True),
        ({"x": {"y": 1}}, {"x": {"y": 1, "z": 2}}, False),
        ({"x": {"y": 1}}, {"x": {"y": 2}}, False),
        ({"x": {"y": 1}}, {"x": 1}, False),
        ({"x": 1}, {"x": {"y": 1}}, False),
        ({"x": [1, 2]}, {"x": (1, 2)}, True),
        ({"x": [1, 2]}, {"x": [1]}, False),
        ({"x": 1}, {"x": True}, False),
        ({"x": True}, {"x": True}, True),
        ({"x": False}, {"x": 0}, False),
        ({"x": 1}, {"x": 1.0}, True),
        ({"x": None}, {"x": None}, True),
        ({}, {"x": None}, False),
        ({"x": "2026-05-01T12:30:15Z"}, {"x": _NOW}, True),
    ],
)
def test_a_payload_contains_what_is_asked_for(payload: Any, part: Any, fits: bool) -> None:
    assert bool(Expectation("t", part).among([_job(payload=payload)])) is fits


def test_what_no_payload_can_hold_is_a_mistake(app: Trunkline) -> None:
    with pytest.raises(PayloadMismatch) as refused:
        Expectation(app.tasks["work"], {"z": 1, "a": 2, "y": 3})
    assert str(refused.value) == "work has no parameter y, z; it has a, b, c"
    with pytest.raises(PayloadMismatch) as refused:
        Expectation(app.tasks["bare"], {"z": 1})
    assert str(refused.value) == "bare has no parameter z; it has none"
    with pytest.raises(PayloadMismatch, match=r"^No payload can hold <object"):
        Expectation("t", {"a": object()})
    assert str(Expectation("t", {})) == "t"
    assert str(Expectation("t", {"a": "grün"})) == 't {"a": "grün"}'
    assert str(Expectation(app.tasks["work"], {"a": 1})) == 'work {"a": 1}'


def test_a_list_has_one_line_for_each_job() -> None:
    assert listing([]) == "  no job is waiting"
    jobs = [
        _job(payload={"a": 1}, state=JobState.SCHEDULED, priority=5, tenant="x", failures=2),
        _job("u"),
    ]
    assert listing(jobs) == (
        '  t {"a": 1} (scheduled for 2026-05-01 12:30:15, queue q, priority 5, tenant x,'
        " 2 failures)\n  u {} (ready, queue q)"
    )


@pytest.mark.parametrize(
    ("count", "more"), [(20, None), (21, "  and 1 more"), (25, "  and 5 more")]
)
def test_a_long_list_is_cut(count: int, more: str | None) -> None:
    lines = listing([_job(str(number)) for number in range(count)]).split("\n")
    assert len(lines) == (20 if more is None else 21)
    assert lines[19].startswith("  19 ")
    assert more is None or lines[-1] == more


@pytest.mark.parametrize(("length", "cut"), [(200, False), (201, True)])
def test_a_long_payload_is_cut(length: int, cut: bool) -> None:
    text = "x" * (length - len('{"a": ""}'))
    (line,) = listing([_job(payload={"a": text})]).split("\n")
    shown = line.removeprefix("  t ").removesuffix(" (ready, queue q)")
    assert len(shown) == 200
    assert shown.endswith("…") is cut


@pytest.mark.parametrize(
    ("state", "end", "outcome"),
    [
        (JobState.COMPLETED, None, "completed"),
        (JobState.RUNNING, None, "lost"),
        (JobState.DEAD, End.FAIL, "dead"),
        (JobState.CANCELLED, End.COMPLETE, "cancelled"),
        (JobState.CANCELLED, End.CANCEL, "cancelled"),
        (JobState.COMPLETED, End.COMPLETE, "completed"),
        (JobState.SCHEDULED, End.FAIL, "failed"),
        (JobState.SCHEDULED, End.SNOOZE, "snoozed"),
        (JobState.READY, End.RELEASE, "released"),
        (JobState.READY, End.HAND_OVER, "released"),
        (JobState.READY, End.HAND_BACK, "released"),
    ],
)
def test_an_attempt_is_counted_by_its_end(state: JobState, end: End | None, outcome: str) -> None:
    assert Attempt(_job(state=state), end, None, None).outcome == outcome


def test_a_drain_is_added_up() -> None:
    assert Drained(1, 2, 3, 4, 5, 6, 7).total == 28
    assert Drained().total == 0


def _decoded(app: Trunkline, job: Any, attempt: Attempt) -> Any:
    return Sandbox(app)._decoded(job, attempt)  # noqa: SLF001


def test_an_attempt_gives_the_typed_result_or_what_was_raised(app: Trunkline) -> None:
    done = _job("work", state=JobState.COMPLETED, result=5)
    assert _decoded(app, done, Attempt(done, End.COMPLETE, None, None)) == 5
    handle = SimpleNamespace(decode_result=lambda value: value + 1)
    assert _decoded(app, handle, Attempt(done, End.COMPLETE, None, None)) == 6
    with pytest.raises(KeyError):
        _decoded(app, done, Attempt(done, End.FAIL, KeyError("x"), None))
    again = _job("work", state=JobState.SCHEDULED, last_error={"a": 1}, reason="r")
    claimed: Any = None
    for report, expected in (
        (Report(claimed, End.SNOOZE, delay=5.0, reason="later"), Snooze),
        (Report(claimed, End.SNOOZE), Snooze),
        (Report(claimed, End.CANCEL, reason="no"), Cancel),
        (Report(claimed, End.FAIL, error={"b": 2}), JobFailed),
        (Report(claimed, End.FAIL), JobFailed),
        (None, JobFailed),
    ):
        end = None if report is None else report.end
        with pytest.raises(expected) as raised:
            _decoded(app, again, Attempt(again, end, None, report))
        error: Any = raised.value
        if isinstance(error, Snooze):
            assert report is not None
            assert (error.delay, error.reason) == (report.delay or 0, report.reason)
        elif isinstance(error, Cancel):
            assert error.reason == "no"
        else:
            kept = report.error if report is not None and report.error else {"a": 1}
            assert error.error == kept


def test_a_sandbox_is_opened_once_and_before_its_use(
    app: Trunkline, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = Sandbox(app)
    with pytest.raises(SandboxMisused) as refused:
        sandbox.now()
    assert str(refused.value) == "The sandbox is not open"
    assert refused.value.hint.startswith("Use it in `with Sandbox(app) as sandbox:`")
    dsn = "postgresql://e@h/d"
    monkeypatch.setattr(server, "running", lambda: SimpleNamespace(superuser_dsn="s"))
    monkeypatch.setattr(disposable, "create", lambda *_: nullcontext((dsn, "postgresql://s@h/d")))
    with sandbox:
        assert sandbox.dsn == app.dsn == dsn
        with pytest.raises(SandboxMisused, match=r"^The sandbox is already open$"):
            sandbox.open()
    with pytest.raises(SandboxMisused):
        assert sandbox.dsn
    assert app.dsn == "postgresql://nobody@nowhere/none"


def test_a_sandbox_for_plain_functions_is_refused_in_a_loop(app: Trunkline) -> None:
    async def story() -> None:
        with pytest.raises(SandboxMisused) as refused:
            Sandbox(app).drain()
        assert str(refused.value) == "A Sandbox was used inside an event loop"
        assert "AsyncSandbox" in refused.value.hint

    asyncio.run(story())


class Counted(AsyncSandbox):
    """A sandbox whose jobs are numbers, and whose clock is a list of waits."""

    def __init__(self, app: Trunkline, claims: list[int], due: list[float | None]) -> None:
        super().__init__(app)
        self._dsn = "postgresql://e@h/d"
        self.claims, self.due = claims, due
        # What each read of the open maps returns; no map after the last one.
        self.maps: list[list[int]] = []
        self.expansions = 0
        self.moved: list[float] = []
        self.asked: list[int] = []

    def _run_call(self, call: Any) -> Any:
        if "move_clock" in call.sql:
            self.moved.append(call.parameters[0])
            return None
        if "workflow_steps" in call.sql:
            return self.maps.pop(0) if self.maps else []
        if "run_duty" in call.sql:
            self.expansions += 1
            return None
        return self.due.pop(0)


@pytest.fixture
def counted(app: Trunkline, monkeypatch: pytest.MonkeyPatch) -> Any:
    def make(claims: list[int], due: list[float | None] | None = None) -> Counted:
        sandbox = Counted(app, claims, due or [])

        async def claim(_: SerialWorker, limit: int = 1) -> list[int]:
            sandbox.asked.append(limit)
            found = sandbox.claims.pop(0) if sandbox.claims else 0
            return [1] * found

        async def run(*_: Any) -> Any:
            return SimpleNamespace(outcome="completed")

        async def enter(worker: SerialWorker) -> SerialWorker:
            return worker

        monkeypatch.setattr(SerialWorker, "claim", claim)
        monkeypatch.setattr(SerialWorker, "run", run)
        monkeypatch.setattr(SerialWorker, "__aenter__", enter)
        return sandbox

    return make


def test_a_drain_runs_until_nothing_is_ready(counted: Any) -> None:
    sandbox = counted([1, 1, 1, 0, 1])
    assert asyncio.run(sandbox.drain()).completed == 3
    assert sandbox.asked == [1] * 4
    sandbox = counted([1, 1, 1])
    assert asyncio.run(sandbox.drain(2)).completed == 2
    assert asyncio.run(counted([1]).drain(0)).completed == 0


def test_a_drain_expands_maps_when_nothing_is_ready(counted: Any) -> None:
    sandbox = counted([1, 0, 1, 0, 1, 0])
    # Both expansions change what is open, and then no map is.
    sandbox.maps = [[1], [2], [2], []]
    assert asyncio.run(sandbox.drain()).completed == 3
    assert sandbox.expansions == 2
    # An expansion that changes nothing is not repeated.
    sandbox = counted([1, 0, 1])
    sandbox.maps = [[1], [1]]
    assert asyncio.run(sandbox.drain()).completed == 1
    assert sandbox.expansions == 1


def test_a_drain_without_open_maps_runs_no_duty(counted: Any) -> None:
    sandbox = counted([1, 1, 0])
    assert asyncio.run(sandbox.drain()).completed == 2
    assert sandbox.expansions == 0
    # Maps are not expanded while jobs are ready, nor after the last job that may run.
    sandbox = counted([1, 1])
    sandbox.maps = [[1], []]
    assert asyncio.run(sandbox.drain(2)).completed == 2
    asyncio.run(sandbox.drain(until_empty=False))
    assert sandbox.expansions == 0


def test_a_drain_of_what_is_ready_now_is_one_claim(counted: Any) -> None:
    sandbox = counted([3, 5])
    assert asyncio.run(sandbox.drain(until_empty=False)).completed == 3
    assert sandbox.asked == [10_000]
    sandbox = counted([2])
    asyncio.run(sandbox.drain(2, until_empty=False))
    assert sandbox.asked == [2]
    sandbox = counted([2])
    assert asyncio.run(sandbox.drain(0, until_empty=False)).completed == 0
    assert sandbox.asked == []


def test_a_drain_with_scheduled_jobs_moves_the_clock_to_each(counted: Any) -> None:
    sandbox = counted([1, 0, 1, 0, 1, 0], [5.0, 0.0, None])
    assert asyncio.run(sandbox.drain(with_scheduled=True)).completed == 3
    assert sandbox.moved == [5.001, 0.001]
    # One that came due meanwhile is looked for once more, and then left.
    sandbox = counted([0, 1, 0, 0], [-1.0, -1.0, -1.0])
    assert asyncio.run(sandbox.drain(with_scheduled=True)).completed == 1
    assert sandbox.moved == []
    assert sandbox.due == []


def test_a_drain_without_an_end_is_refused(counted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "_RUNAWAY", 3)
    with pytest.raises(DrainUnfinished, match=r"^More than 3 jobs ran and others still wait$"):
        asyncio.run(counted([1] * 9).drain())
    # With a bound of one's own it is none.
    assert asyncio.run(counted([1] * 9).drain(3)).completed == 3


def test_a_job_that_is_not_claimed_is_explained(app: Trunkline) -> None:
    sandbox = Sandbox(app)
    jobs: Any = SimpleNamespace(
        get=lambda _: _job("elsewhere"),
        explain=lambda _: [SimpleNamespace(reason="paused"), SimpleNamespace(reason="late")],
    )
    app.sync.jobs = jobs
    error: Any = sandbox._not_claimed(UUID(int=1))  # noqa: SLF001
    assert type(error) is UnknownTask
    assert error.detail == {"task": "elsewhere"}
    jobs.get = lambda _: _job("old")
    error = sandbox._not_claimed(UUID(int=1))  # noqa: SLF001
    assert type(error) is JobNotRunnable
    assert str(error) == f"Job {UUID(int=1)} of old cannot be claimed: paused, late"
    jobs.explain = lambda _: []
    assert str(sandbox._not_claimed(UUID(int=1))).endswith("claimed: ready")  # noqa: SLF001


@pytest.mark.parametrize(
    ("count", "found", "message"),
    [
        (None, 0, "expected a job of t, found 0; waiting:\n  no job is waiting"),
        (None, 2, None),
        (2, 2, None),
        (0, 0, None),
        (3, 2, "expected 3 jobs of t, found 2; waiting:\n  t {} (ready, queue q)"),
        (1, 2, "expected 1 jobs of t, found 2; waiting:\n  t {} (ready, queue q)"),
    ],
)
def test_expectations_count(
    app: Trunkline, monkeypatch: pytest.MonkeyPatch, count: int | None, found: int, message: str
) -> None:
    sandbox = Sandbox(app)
    jobs = [_job()] * found
    monkeypatch.setattr(Sandbox, "all_enqueued", lambda _: jobs)
    if message is None:
        assert sandbox.assert_enqueued("t", count=count) == jobs  # type: ignore[unreachable]
    else:
        with pytest.raises(AssertionError) as failed:
            sandbox.assert_enqueued("t", count=count)
        assert str(failed.value).startswith(message)
    if found:
        with pytest.raises(AssertionError, match=rf"^expected no job of t, found {found}:"):
            sandbox.refute_enqueued("t")
    else:
        sandbox.refute_enqueued("t")
    sandbox.refute_enqueued("t", {"x": 1}, y=2)

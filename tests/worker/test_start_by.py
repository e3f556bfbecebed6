"""Limited jobs start within a second of their claim, or are handed back and charged for nothing.

A window counts a call from its claim on. What begins later might be one too many for the provider.
"""

import asyncio
import json
import time
from datetime import timedelta
from typing import Any

import pytest

from tests.worker import process_app
from tests.worker.scene import Scene, a_job, eventually, held_job, no_services
from tests.worker.stage import stage
from trunkline import Trunkline
from trunkline.db.call import Call
from trunkline.db.calls.work import CLAIM, Claimed
from trunkline.db.lasting import LastingConnection
from trunkline.worker.executor import Executor
from trunkline.worker.report import End
from trunkline.worker.roster import HeldJob, Roster


def limited(held: HeldJob, left: float) -> HeldJob:
    """A job of which the handler may begin so many seconds from now on."""
    held.start_before = time.monotonic() + left
    return held


def charged(scene: Scene, name: str = "api") -> int:
    found: int = scene.value(
        "select requests_of_minute from trunkline.buckets where name = %s", name
    )
    return found


def test_the_second_counts_from_when_the_claim_was_sent() -> None:
    """By the worker's own monotonic clock: nobody compares it with the server's."""
    job = a_job()
    job = job._replace(start_by=job.claimed_at + timedelta(seconds=1))
    (held,) = Roster().add([job], sent=100.0)
    assert held.start_before == 101.0
    (free,) = Roster().add([a_job()], sent=100.0)
    assert free.start_before is None


@pytest.mark.parametrize("kind", ["loop", "thread"])
async def test_a_late_one_is_handed_back_and_its_handler_never_called(kind: str) -> None:
    app = Trunkline("postgresql://nobody@nowhere/none")
    called: list[str] = []

    @app.task
    async def loop(who: str) -> None:
        called.append(who)

    @app.task
    def thread(who: str) -> None:
        called.append(who)

    async with stage(app) as on:
        late = limited(held_job(kind, '{"who": "late"}'), -0.001)
        good = limited(held_job(kind, '{"who": "good"}'), 30)
        on.executor.submit([late, good])
        await on.until_reported(2)
    assert called == ["good"]
    report = on.report_of(late)
    assert report is not None
    assert report.end is End.HAND_BACK
    report = on.report_of(good)
    assert report is not None
    assert report.end is End.COMPLETE


async def test_a_job_that_waits_too_long_for_a_thread_is_late() -> None:
    app = Trunkline("postgresql://nobody@nowhere/none")
    called: list[str] = []

    @app.task
    def first() -> None:
        second.start_before = time.monotonic() - 0.001

    @app.task
    def work() -> None:
        called.append("work")

    async with stage(app, concurrency=2, threads=1) as on:
        second = limited(held_job("work"), 30)
        on.executor.submit([held_job("first"), second])
        await on.until_reported(2)
    report = on.report_of(second)
    assert report is not None
    assert (report.end, called) == (End.HAND_BACK, [])


async def test_a_process_checks_the_start_time_when_it_is_ready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To start one and to import the handler takes its time: the worker looked too early."""
    monkeypatch.setattr("trunkline.worker.executor.check_start", lambda _before: None)
    async with stage(process_app.app, concurrency=1) as on:
        payload = json.dumps({"a": 2, "b": 3})
        good = limited(held_job("add", payload), 60)
        late = limited(held_job("add", payload), -0.001)
        on.executor.submit([good, late])
        await on.until_reported(2)
    ends = [report.end for report in on.reports]
    assert ends == [End.COMPLETE, End.HAND_BACK]


class _Paced(Executor):
    """An executor of ten runners in the middle of its work."""

    def at(self, **state: Any) -> int:
        loop = asyncio.get_running_loop()
        self._idle.extend(loop.create_future() for _ in range(state["idle"]))
        self._buffer.extend([held_job()] * state["buffered"])
        self._buffer.extend([limited(held_job(), 1)] * state.get("limited_buffered", 0))
        self._limited_running = state.get("limited_running", 0)
        self._average, self._limited_average = state["average"], state["limited_average"]
        return self.limited_demand()


_SHORT, _LONG = 0.01, 1.0


@pytest.mark.parametrize(
    ("wanted", "state"),
    [
        # Nothing known yet, or all are long: one for each free runner, less those that are here.
        (10, {"idle": 10, "buffered": 0, "average": _LONG, "limited_average": _LONG}),
        (1, {"idle": 3, "buffered": 2, "average": _LONG, "limited_average": _LONG}),
        (0, {"idle": 0, "buffered": 0, "average": _LONG, "limited_average": _SHORT}),
        # Others are short, so runners turn; limited ones hold theirs.
        (10, {"idle": 0, "buffered": 90, "average": _SHORT, "limited_average": _LONG}),
        (
            3,
            {
                "idle": 1,
                "buffered": 90,
                "average": _SHORT,
                "limited_average": _LONG,
                "limited_running": 5,
                "limited_buffered": 2,
            },
        ),
        (
            0,
            {
                "idle": 0,
                "buffered": 90,
                "average": _SHORT,
                "limited_average": _LONG,
                "limited_running": 10,
            },
        ),
        # Short ones are claimed ahead: what ten runners end within half a second.
        (500, {"idle": 0, "buffered": 0, "average": _SHORT, "limited_average": _SHORT}),
        (504, {"idle": 4, "buffered": 0, "average": _SHORT, "limited_average": _SHORT}),
        # Less what has to run before them, and none behind work of more than half a second.
        (250, {"idle": 0, "buffered": 250, "average": _SHORT, "limited_average": _SHORT}),
        (0, {"idle": 0, "buffered": 600, "average": _SHORT, "limited_average": _SHORT}),
        # No more than anything is claimed ahead.
        (2000, {"idle": 0, "buffered": 0, "average": _SHORT, "limited_average": 0.0001}),
    ],
)
async def test_how_many_would_start_in_time(wanted: int, state: dict[str, Any]) -> None:
    made = _Paced(
        Trunkline("postgresql://nobody@nowhere/none").tasks,
        no_services(),
        concurrency=10,
        threads=None,
        report=lambda _report: None,
        on_demand=lambda: None,
    )
    assert made.at(**state) == wanted


async def test_work_without_limits_does_not_keep_limited_jobs_out(scene: Scene) -> None:
    """However much of it there is: a limited job of higher priority is claimed beside it."""
    scene.superuser.execute("""select trunkline.set_limit('api', '{"requests_per_minute": 50}')""")
    after: list[int] = []
    flood = 0

    @scene.app.task
    async def short() -> None:
        nonlocal flood
        flood += 1

    @scene.app.task(limit="api", priority=5)
    async def urgent() -> None:
        after.append(flood)

    await scene.app.enqueue_many([short.request() for _ in range(10_000)])
    async with scene.working(concurrency=3):
        await eventually(lambda: flood > 500, "the others are under way")
        (job,) = await scene.enqueue("urgent")
        await scene.until_state(job, "completed")
        # Before it was the turn of all the others.
        assert after[0] < 10_000


async def test_jobs_that_take_long_are_charged_one_for_each_free_runner(scene: Scene) -> None:
    """Short jobs are claimed ahead; among them limited ones that would wait are not."""
    scene.superuser.execute("""select trunkline.set_limit('api', '{"requests_per_minute": 50}')""")
    go = asyncio.Event()
    running = 0

    @scene.app.task
    async def short() -> None:
        pass

    @scene.app.task(limit="api")
    async def long() -> None:
        nonlocal running
        running += 1
        await go.wait()

    async with scene.working(concurrency=3):
        # So many that jobs prove to be short, and are claimed ahead.
        await scene.until_ended(await scene.enqueue("short", count=300))
        jobs = await scene.enqueue("long", count=20)
        await eventually(lambda: running == 3, "three run")
        assert charged(scene) == 3
        go.set()
        await scene.until_ended(jobs)
    assert charged(scene) == 20


async def test_what_came_late_is_charged_for_nothing_and_runs_with_the_next_claim(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.superuser.execute("""select trunkline.set_limit('api', '{"tokens_per_minute": 500}')""")
    original = LastingConnection.run
    made_late: list[Any] = []

    async def run(self: LastingConnection, call: Call[Any], **more: Any) -> Any:
        found = await original(self, call, **more)
        if call.sql == CLAIM and found.jobs and not made_late:
            # As if the answer had been on its way for a second.
            made_late.extend(found.jobs)
            jobs = [
                job._replace(start_by=job.claimed_at - timedelta(seconds=1)) for job in found.jobs
            ]
            return Claimed(jobs, found.position)
        return found

    monkeypatch.setattr(LastingConnection, "run", run)
    attempts: list[int] = []

    @scene.app.task(limit="api", cost={"tokens": 400})
    async def work() -> None:
        attempts.append(1)

    async with scene.working():
        (job,) = await scene.enqueue("work")
        found = await scene.until_state(job, "completed")
    assert len(made_late) == 1
    assert attempts == [1]
    assert (found.attempt, found.deferrals, found.failures) == (2, 0, 0)
    tokens = "select tokens_of_minute, requests_of_minute from trunkline.buckets where name = 'api'"
    # Twice 400 would not have fitted.
    assert tuple(scene.rows(tokens)[0]) == (400, 1)

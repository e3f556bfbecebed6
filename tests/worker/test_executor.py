"""Runners: how many jobs at once, in which order, and how much is asked for."""

import asyncio
import logging
import sys
import time
from types import FrameType

import pytest

from tests.worker.scene import eventually, held_job
from tests.worker.stage import stage
from trunkline import Context, SyncContext, Trunkline
from trunkline.worker.report import End
from trunkline.worker.roster import Stop


@pytest.fixture
def app() -> Trunkline:
    return Trunkline("postgresql://nobody@nowhere/none")


async def test_so_many_jobs_run_at_once_and_no_more(app: Trunkline) -> None:
    """TA-33."""
    running, most = 0, 0
    go = asyncio.Event()

    @app.task
    async def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await go.wait()
        running -= 1

    async with stage(app, concurrency=5) as on:
        on.submit("work", *["{}"] * 12)
        await eventually(lambda: running == 5, "five run")
        assert (on.executor.busy, on.executor.buffered) == (5, 7)
        go.set()
        await on.until_reported(12)
    assert most == 5


async def test_a_free_runner_claims_again_without_waiting_for_the_slowest(app: Trunkline) -> None:
    """TA-33."""
    slow = asyncio.Event()

    @app.task
    async def work(wait: bool) -> None:
        if wait:
            await slow.wait()

    async with stage(app, concurrency=5) as on:
        assert on.executor.demand() == 5
        asked = on.demands
        on.submit("work", '{"wait": true}', *['{"wait": false}'] * 4)
        await on.until_reported(4)
        await eventually(lambda: on.executor.busy == 1, "four are free")
        assert on.executor.demand() == 4
        assert on.demands > asked
        quick = on.submit("work", *['{"wait": false}'] * 4)
        await on.until_reported(8)
        assert all(on.report_of(held) for held in quick)
        slow.set()
        await on.until_reported(9)


async def test_jobs_start_in_the_order_in_which_they_came(app: Trunkline) -> None:
    started = []

    @app.task
    async def work(number: int) -> None:
        started.append(number)
        await asyncio.sleep(0)

    async with stage(app, concurrency=1) as on:
        on.submit("work", *(f'{{"number": {n}}}' for n in range(20)))
        await on.until_reported(20)
    assert started == list(range(20))


async def test_long_jobs_are_not_claimed_ahead(app: Trunkline) -> None:
    go = asyncio.Event()

    @app.task
    async def work() -> None:
        await go.wait()

    async with stage(app, concurrency=3) as on:
        assert on.executor.demand() == 3
        on.submit("work", "{}", "{}")
        await eventually(lambda: on.executor.buffered == 0, "two run")
        assert on.executor.demand() == 1
        on.submit("work")
        await eventually(lambda: on.executor.buffered == 0, "three run")
        assert on.executor.demand() == 0
        go.set()


async def test_an_executor_with_free_runners_after_a_small_batch_asks_for_more(
    app: Trunkline,
) -> None:
    """TA-33: the claimer looks at the demand before the runners have taken their jobs."""
    go = asyncio.Event()

    @app.task
    async def work() -> None:
        await go.wait()

    async with stage(app, concurrency=10) as on:
        asked = on.demands
        on.submit("work", *["{}"] * 7)
        await eventually(lambda: on.executor.buffered == 0, "seven run")
        assert on.demands > asked
        assert on.executor.demand() == 3
        go.set()


async def test_short_jobs_are_claimed_ahead_until_one_proves_long(app: Trunkline) -> None:
    @app.task
    async def work() -> None:
        pass

    async with stage(app, concurrency=10) as on:
        on.submit("work", *["{}"] * 500)
        await on.until_reported(500)
        await on.until_idle(10)
        assert 50 < on.executor.demand() <= 10 + 2000
        on.executor.slow_down()
        assert on.executor.demand() == 10


async def test_the_next_batch_is_asked_for_before_short_jobs_of_this_one_ran(
    app: Trunkline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They leave the loop to nobody until all of them have run; the server need not wait."""

    @app.task
    async def work() -> None:
        pass

    async with stage(app, concurrency=10) as on:
        # Jobs so short that the most is claimed ahead: twice the largest claim.
        monkeypatch.setattr(on.executor, "_average", 1e-6)
        on.submit("work", *["{}"] * 500)
        assert on.executor.demand() >= 500
        await on.until_reported(500)


async def test_a_handful_missing_from_many_claimed_ahead_is_not_asked_for(app: Trunkline) -> None:
    """Claims of a few at a time would cost more than they bring."""
    go = asyncio.Event()

    @app.task
    async def work(wait: bool) -> None:
        if wait:
            await go.wait()

    async with stage(app, concurrency=10) as on:
        on.submit("work", *['{"wait": false}'] * 800)
        await on.until_reported(800)
        await on.until_idle(10)
        ahead = on.executor.demand() - 10
        assert ahead > 20
        on.submit("work", *['{"wait": true}'] * (10 + ahead - 3))
        await eventually(lambda: on.executor.buffered == ahead - 3, "all runners have a job")
        assert on.executor.demand() == 0
        go.set()


async def test_an_executor_that_accepts_nothing_asks_for_nothing_and_starts_nothing(
    app: Trunkline,
) -> None:
    started = []
    go = asyncio.Event()

    @app.task
    async def work(number: int) -> None:
        started.append(number)
        await go.wait()

    async with stage(app, concurrency=2) as on:
        on.submit("work", '{"number": 1}')
        await eventually(lambda: started, "one runs")
        on.executor.accepting = False
        on.submit("work", '{"number": 2}', '{"number": 3}')
        go.set()
        await on.until_reported(1)
        await asyncio.sleep(0)
        assert on.executor.demand() == 0
        given_back = on.executor.take_unstarted()
        assert [held.job.payload for held in given_back] == ['{"number": 2}', '{"number": 3}']
        assert on.executor.buffered == 0
    assert started == [1]


async def test_a_job_stopped_before_its_start_never_starts(app: Trunkline) -> None:
    started = []

    @app.task
    async def work() -> None:
        started.append(1)

    async with stage(app, concurrency=1) as on:
        cancelled, lost = held_job(), held_job()
        on.executor.stop_job(cancelled, Stop.CANCELLED)
        on.executor.stop_job(lost, Stop.LOST)
        on.executor.submit([cancelled, lost])
        await eventually(lambda: on.forgotten, "the lost one is forgotten")
        assert [report.end for report in on.reports] == [End.CANCEL]
        assert on.forgotten == [lost]
    assert started == []


@pytest.mark.parametrize(
    ("payload", "expected", "end"),
    [
        ('{"text": 5}', "text", End.FAIL),
        # Other code may take it: the engine decides.
        ('{"text": "a", "other": 1}', "other", End.HAND_OVER),
        ("{}", "text", End.HAND_OVER),
    ],
)
async def test_a_payload_that_does_not_fit_is_not_run(
    app: Trunkline, payload: str, expected: str, end: End
) -> None:
    @app.task
    async def work(text: str) -> None:
        raise AssertionError("it ran")

    async with stage(app) as on:
        report = await on.run("work", payload)
    assert (report.end, report.retryable) == (end, False)
    assert report.error is not None
    assert report.error["code"] == "payload_mismatch"
    assert report.error.get("field") == (None if end is End.FAIL else expected)
    assert expected in report.error["message"]


async def test_handlers_with_and_without_context_in_loop_and_thread(app: Trunkline) -> None:
    @app.task
    async def in_loop(ctx: Context, a: int) -> tuple[str, int]:
        return ctx.task, a

    @app.task
    async def in_loop_bare(a: int) -> int:
        return a

    @app.task
    def in_thread(ctx: SyncContext, a: int) -> tuple[str, int]:
        return ctx.task, a

    @app.task
    def in_thread_bare(a: int) -> int:
        return a

    async with stage(app) as on:
        results = [(await on.run(task, '{"a": 7}')).result for task in app.tasks]
    assert results == ['["in_loop",7]', "7", '["in_thread",7]', "7"]


async def test_a_failure_is_logged_with_the_handlers_traceback(
    app: Trunkline, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task
    async def work() -> None:
        raise ValueError("the printer is on fire")

    async with stage(app) as on:
        await on.run("work")
    (told,) = [record for record in caplog.records if "on fire" in record.getMessage()]
    assert told.levelno == logging.WARNING
    assert told.exc_info is not None
    trace = told.exc_info[2]
    assert trace is not None
    assert trace.tb_frame.f_code.co_name == "work"


async def test_the_time_of_the_last_start_is_known(app: Trunkline) -> None:
    @app.task
    async def work() -> None:
        pass

    async with stage(app) as on:
        before = time.monotonic()
        await on.run("work")
        assert before <= on.executor.last_start <= time.monotonic()


async def test_a_plain_job_runs_no_code_of_workflows_and_large_results(app: Trunkline) -> None:
    """Each such call would take 1 to 2 % of the time of a job that does nothing."""

    @app.task
    async def work(number: int) -> None:
        pass

    modules = set()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        package, _, module = frame.f_globals.get("__name__", "").partition(".")
        if event == "call" and package == "trunkline":
            modules.add(module)

    async with stage(app, concurrency=1) as on:
        await on.run("work", '{"number": 0}')
        earlier = sys.getprofile()
        sys.setprofile(note)
        try:
            on.submit("work", *['{"number": 0}'] * 10)
            await on.until_reported(11)
        finally:
            sys.setprofile(earlier)
    assert modules == {
        "client.signature",
        "model.codec",
        "telemetry.logs",
        "worker.executor",
        "worker.report",
        "worker.roster",
    }

"""Interrupting handlers: it reaches the one that is meant, and only that one."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable

import pytest

from tests.worker.scene import eventually
from tests.worker.stage import Stage, stage
from trunkline import Retry, Trunkline
from trunkline.worker.report import End
from trunkline.worker.roster import Stop


@pytest.fixture
def app() -> Trunkline:
    app = Trunkline("postgresql://nobody@nowhere/none")

    @app.task
    async def healthy() -> int:
        for _ in range(3):
            await asyncio.sleep(0)
        return 1

    @app.task
    async def endless() -> None:
        await asyncio.Event().wait()

    return app


async def assert_sound(on: Stage, runners: int = 1) -> None:
    """Every runner still lives and runs what it is given."""
    before = len(on.reports)
    on.submit("healthy", *["{}"] * (3 * runners))
    await on.until_reported(before + 3 * runners)
    assert {report.end for report in on.reports[before:]} == {End.COMPLETE}
    await on.until_idle(runners)


@pytest.mark.parametrize(
    ("stop", "end"),
    [
        (Stop.CANCELLED, End.CANCEL),
        (Stop.SHUTDOWN, End.RELEASE),
        (Stop.HARD_LIMIT, End.FAIL),
        (Stop.LOST, None),
    ],
)
async def test_an_interruption_reaches_the_handler(
    app: Trunkline, stop: Stop, end: End | None
) -> None:
    """RC-32, CP-40: what was lost is discarded without a word."""
    async with stage(app, concurrency=1) as on:
        (held,) = on.submit("endless")
        await on.until_started(held)
        on.executor.stop_job(held, stop)
        await eventually(lambda: on.reports or on.forgotten, "it ended")
        assert [report.end for report in on.reports] == ([end] if end else [])
        assert on.forgotten == ([] if end else [held])
        await assert_sound(on)


async def test_the_first_reason_stands(app: Trunkline) -> None:
    cleaning = asyncio.Event()

    @app.task
    async def careful() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await cleaning.wait()

    async with stage(app, concurrency=1) as on:
        (held,) = on.submit("careful")
        await on.until_started(held)
        on.executor.stop_job(held, Stop.CANCELLED)
        await asyncio.sleep(0)
        for _ in range(5):
            on.executor.stop_job(held, Stop.SHUTDOWN)
        await on.until_reported(1)
        assert on.reports[0].end is End.CANCEL
        await assert_sound(on)


async def test_an_interruption_that_comes_with_the_end_does_not_hit_the_next_job(
    app: Trunkline,
) -> None:
    """At every moment between the last steps of one job and the first of the next."""
    for delay in range(12):
        async with stage(app, concurrency=1) as on:
            first, second = on.submit("healthy", "{}", "{}")
            for _ in range(delay):
                await asyncio.sleep(0)
            on.executor.stop_job(first, Stop.CANCELLED)
            await on.until_reported(2)
            report = on.report_of(second)
            assert report is not None
            assert report.end is End.COMPLETE
            await assert_sound(on)


async def test_a_handler_that_swallows_the_interruption_goes_on_and_ends_as_it_likes(
    app: Trunkline,
) -> None:
    swallowed = 0
    go = asyncio.Event()

    @app.task
    async def stubborn() -> str:
        nonlocal swallowed
        while not go.is_set():
            try:
                await go.wait()
            except asyncio.CancelledError:
                swallowed += 1
        return "done"

    async with stage(app, concurrency=1) as on:
        (held,) = on.submit("stubborn")
        await on.until_started(held)
        for times in range(1, 4):
            on.executor.stop_job(held, Stop.CANCELLED)
            await eventually(lambda times=times: swallowed == times, "it swallowed")  # type: ignore[misc]
        go.set()
        await on.until_reported(1)
        assert (on.reports[0].end, on.reports[0].result) == (End.COMPLETE, '"done"')
        await assert_sound(on)


async def test_an_error_that_an_interruption_became_is_still_the_interruption(
    app: Trunkline,
) -> None:
    @app.task
    async def translating() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            raise RuntimeError("the library says: closed") from error

    async with stage(app, concurrency=1) as on:
        (held,) = on.submit("translating")
        await on.until_started(held)
        on.executor.stop_job(held, Stop.SHUTDOWN)
        await on.until_reported(1)
        assert on.reports[0].end is End.RELEASE
        await assert_sound(on)


async def test_an_interrupted_handler_may_still_choose_its_outcome(app: Trunkline) -> None:
    @app.task
    async def choosing() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise Retry(after=60) from None

    async with stage(app, concurrency=1) as on:
        (held,) = on.submit("choosing")
        await on.until_started(held)
        on.executor.stop_job(held, Stop.SHUTDOWN)
        await on.until_reported(1)
        assert (on.reports[0].end, on.reports[0].delay) == (End.FAIL, 60.0)


def _raise(error: BaseException) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


def _cancel_itself() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()


class Rude(BaseException):
    """Nothing of ours catches it by name."""


@pytest.mark.parametrize(
    "act",
    [
        _raise(asyncio.CancelledError()),
        _raise(KeyboardInterrupt()),
        _raise(SystemExit(3)),
        _raise(GeneratorExit()),
        _raise(Rude("!")),
        _cancel_itself,
    ],
    ids=["CancelledError", "KeyboardInterrupt", "SystemExit", "GeneratorExit", "Rude", "itself"],
)
@pytest.mark.parametrize("waits", [True, False], ids=["then waits", "then returns"])
async def test_whatever_a_handler_raises_ends_its_attempt_and_not_the_runner(
    app: Trunkline, act: Callable[[], None], waits: bool
) -> None:
    @app.task
    async def rude() -> None:
        act()
        if waits:
            await asyncio.sleep(0)

    async with stage(app, concurrency=1) as on:
        for _ in range(3):
            report = await on.run("rude")
            expected = End.COMPLETE if act is _cancel_itself and not waits else End.FAIL
            assert report.end is expected
        await assert_sound(on)


@pytest.mark.parametrize(
    "error",
    [
        asyncio.CancelledError(),
        KeyboardInterrupt(),
        SystemExit(3),
        GeneratorExit(),
        StopIteration(),
        StopAsyncIteration(),
        Rude("!"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_whatever_a_thread_raises_ends_its_attempt_and_not_the_runner(
    app: Trunkline, error: BaseException
) -> None:
    @app.task
    def rude() -> None:
        raise error

    async with stage(app, concurrency=1) as on:
        report = await on.run("rude")
        assert report.end is End.FAIL
        await assert_sound(on)


async def test_an_awaited_task_that_was_cancelled_is_a_failure_of_the_attempt(
    app: Trunkline,
) -> None:
    @app.task
    async def delegating() -> None:
        inner = asyncio.ensure_future(asyncio.Event().wait())
        inner.cancel()
        await inner

    async with stage(app, concurrency=1) as on:
        report = await on.run("delegating")
        assert report.end is End.FAIL
        assert report.error is not None
        assert report.error["type"] == "CancelledError"
        await assert_sound(on)


async def test_timeouts_inside_handlers_work_after_many_interruptions(app: Trunkline) -> None:
    """`asyncio.timeout` and task groups count cancellations of their task."""

    async def fail() -> None:
        raise LookupError("inside")

    @app.task
    async def timing_out() -> list[str]:
        seen = []
        try:
            async with asyncio.timeout(0.001):
                await asyncio.Event().wait()
        except TimeoutError:
            seen.append("timed out")
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(fail())
                await asyncio.Event().wait()
        except* LookupError:
            seen.append("failed inside")
        return seen

    async with stage(app, concurrency=1) as on:
        for _ in range(5):
            (held,) = on.submit("endless")
            await on.until_started(held)
            on.executor.stop_job(held, Stop.CANCELLED)
            on.executor.stop_job(held, Stop.CANCELLED)
            await eventually(lambda held=held: on.report_of(held), "it ended")  # type: ignore[misc]
            report = await on.run("timing_out")
            assert (report.end, report.result) == (End.COMPLETE, '["timed out","failed inside"]')


async def test_a_storm_of_interruptions_loses_no_report_and_no_runner(app: Trunkline) -> None:
    """Some end, some are stopped, some both, at any moment; each is answered once."""

    async def interrupter(on: Stage) -> AsyncIterator[None]:
        reasons = itertools.cycle([Stop.CANCELLED, Stop.SHUTDOWN, Stop.HARD_LIMIT])
        for number in range(300):
            healthy, endless = *on.submit("healthy"), *on.submit("endless")
            for _ in range(number % 7):
                await asyncio.sleep(0)
            on.executor.stop_job(healthy, next(reasons))
            on.executor.stop_job(endless, next(reasons))
            if number % 3 == 0:
                on.executor.stop_job(endless, next(reasons))
            yield

    async with stage(app, concurrency=4) as on:
        async for _ in interrupter(on):
            pass
        await on.until_reported(600)
        assert len({report.job.job_id for report in on.reports}) == 600
        await assert_sound(on, runners=4)
        assert on.forgotten == []


async def test_closing_ends_the_runners_and_leaves_running_jobs_to_their_leases(
    app: Trunkline,
) -> None:
    async with stage(app, concurrency=2) as on:
        (held,) = on.submit("endless")
        await on.until_started(held)
        await on.executor.close()
        names = [task.get_name() for task in asyncio.all_tasks()]
        assert not [name for name in names if name.startswith("trunkline runner")]
        assert (on.reports, on.forgotten) == ([], [])

"""Threads of handlers that are plain functions."""

import asyncio
import contextvars
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.worker.scene import DEADLINE, eventually
from tests.worker.stage import stage
from trunkline import SyncContext, Trunkline
from trunkline.worker.report import End
from trunkline.worker.roster import Stop
from trunkline.worker.threads import Threads

_word = contextvars.ContextVar("word", default="none")


@contextmanager
def threads(limit: int) -> Iterator[Threads]:
    made = Threads(limit)
    try:
        yield made
    finally:
        made.close()


def alive() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name.startswith("trunkline handler")]


async def test_no_more_threads_run_than_the_limit() -> None:
    go = threading.Event()
    lock = threading.Lock()
    running = most = 0

    def work() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        go.wait(10)
        with lock:
            running -= 1

    with threads(3) as pool:
        calls = [asyncio.create_task(pool.run(work)) for _ in range(9)]
        await eventually(lambda: running == 3, "three run")
        go.set()
        await asyncio.gather(*calls)
    assert most == 3


async def test_a_thread_is_used_again() -> None:
    with threads(4) as pool:
        idents = {await pool.run(threading.get_ident) for _ in range(200)}
    assert len(idents) == 1


async def test_threads_end_when_they_are_no_longer_needed() -> None:
    before = len(alive())
    with threads(5) as pool:
        await asyncio.gather(*(pool.run(lambda: None) for _ in range(20)))
        assert before < len(alive()) <= before + 5
    await eventually(lambda: len(alive()) <= before, "all ended")


async def test_values_errors_and_context_variables_pass() -> None:
    def fail() -> None:
        raise LookupError("not here")

    def change() -> str:
        seen = _word.get()
        _word.set("changed")
        return seen

    with threads(1) as pool:
        _word.set("mine")
        assert await pool.run(change) == "mine"
        assert _word.get() == "mine"
        assert await pool.run(_word.get) == "mine"
        with pytest.raises(LookupError, match="not here"):
            await pool.run(fail)


async def test_an_abandoned_thread_does_not_keep_others_from_running() -> None:
    go = threading.Event()
    with threads(1) as pool:
        stuck = asyncio.create_task(pool.run(go.wait, 10))
        await eventually(lambda: len(alive()), "it runs")
        stuck.cancel()
        await asyncio.wait({stuck})
        assert await pool.run(lambda: "free") == "free"
        go.set()


async def test_a_handler_that_outlives_its_event_loop_harms_nobody() -> None:
    go = threading.Event()

    def run_a_loop_that_ends_first() -> None:
        async def main() -> None:
            pool = Threads(1)
            stuck = asyncio.create_task(pool.run(go.wait, 10))
            await asyncio.sleep(0)
            stuck.cancel()
            pool.close()

        asyncio.run(main())

    before = len(alive())
    await asyncio.to_thread(run_a_loop_that_ends_first)
    go.set()
    assert await eventually(lambda: len(alive()) <= before, "the thread ended")


async def test_an_interrupted_thread_is_left_behind_and_logged() -> None:
    """Python cannot stop a thread: the attempt ends, and the handler may look at ctx.cancelled."""
    app = Trunkline("postgresql://nobody@nowhere/none")
    seen: list[bool] = []
    go = threading.Event()

    @app.task
    def stuck(ctx: SyncContext) -> None:
        seen.append(ctx.cancelled)
        go.wait(DEADLINE)
        seen.append(ctx.cancelled)

    @app.task
    def quick() -> int:
        return 1

    async with stage(app, concurrency=1) as on:
        (held,) = on.submit("stuck")
        await eventually(lambda: seen, "it runs")
        on.executor.stop_job(held, Stop.HARD_LIMIT)
        await on.until_reported(1)
        assert seen == [False], "its thread is still at work"
        assert on.reports[0].end is End.FAIL
        assert (await on.run("quick")).result == "1"
        go.set()
        await eventually(lambda: len(seen) == 2, "it ends")
        assert seen == [False, True]
        assert len(on.reports) == 2


async def test_fewer_threads_than_runners() -> None:
    app = Trunkline("postgresql://nobody@nowhere/none")
    go = threading.Event()
    running: list[int] = []

    @app.task
    def slow() -> None:
        running.append(1)
        go.wait(DEADLINE)

    @app.task
    async def in_loop() -> int:
        return 1

    async with stage(app, concurrency=4, threads=2) as on:
        on.submit("slow", "{}", "{}", "{}")
        await eventually(lambda: len(running) == 2, "two run")
        assert (await on.run("in_loop")).result == "1"
        assert len(running) == 2
        go.set()
        await on.until_reported(4)

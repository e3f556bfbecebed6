"""Handlers in processes of their own."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.processes import REPOSITORY
from tests.support.waiting import until
from tests.support.worker_process import lives
from tests.worker import process_app
from tests.worker.scene import Scene, eventually, held_job, no_services
from tests.worker.stage import Stage, stage
from trunkline import Trunkline
from trunkline.worker.process_pool import ProcessPool
from trunkline.worker.report import End
from trunkline.worker.roster import HeldJob, Stop


@asynccontextmanager
async def processes(concurrency: int = 1) -> AsyncIterator[Stage]:
    async with stage(process_app.app, concurrency=concurrency) as on:
        yield on


async def running(on: Stage, task: str, folder: Path) -> tuple[HeldJob, int]:
    """Start a handler that says when it runs; return it and its process."""
    (held,) = on.submit(task, json.dumps({"folder": str(folder)}))
    found = await eventually(lambda: list(folder.glob("runs-*")), "it runs")
    return held, int(found[0].name.partition("-")[2])


def has_ended(child: int) -> bool:
    """Whether all its threads are gone, and not only the first."""
    try:
        return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


async def test_results_errors_and_outcomes_come_back() -> None:
    async with processes() as on:
        assert (await on.run("add", '{"a": 2, "b": 3}')).result == "5"
        failed = await on.run("fail", '{"text": "the reason"}')
        assert failed.end is End.FAIL
        assert failed.error is not None
        assert failed.error["type"] == "ValueError"
        assert failed.error["message"] == "the reason"
        assert "in fail" in failed.error["traceback"]
        assert "process_child" not in failed.error["traceback"]
        snoozed = await on.run("end", '{"how": "snooze"}')
        assert (snoozed.end, snoozed.delay) == (End.SNOOZE, 60.0)
        cancelled = await on.run("end", '{"how": "cancel"}')
        assert (cancelled.end, cancelled.reason) == (End.CANCEL, "not wanted")
        retried = await on.run("end", '{"how": "retry"}')
        assert (retried.end, retried.delay, retried.retryable) == (End.FAIL, 5.0, True)
        discarded = await on.run("end", '{"how": "discard"}')
        assert (discarded.end, discarded.retryable) == (End.FAIL, False)
        unstorable = await on.run("unstorable")
        assert unstorable.error is not None
        assert unstorable.error["code"] == "result_not_storable"
        mismatch = await on.run("add", '{"a": "two", "b": 3}')
        assert mismatch.error is not None
        assert mismatch.error["code"] == "payload_mismatch"
        large = await on.run("large", '{"size": 3000000}')
        assert large.result is not None
        assert len(large.result) == 3_000_002


async def test_a_process_is_used_again_and_there_are_as_many_as_run_at_once() -> None:
    async with processes(concurrency=2) as on:
        first = [(await on.run("pid")).result for _ in range(3)]
        assert len(set(first)) == 1
        assert first[0] != str(os.getpid())
        on.submit("pid", "{}", "{}")
        await on.until_reported(5)
        assert len({report.result for report in on.reports}) <= 2
    await eventually(lambda: not lives(int(first[0] or "0")), "closing ends it")


@pytest.mark.parametrize(
    ("how", "said"), [("exit", "exit code 7"), ("abrupt", "exit code 9"), ("kill", "signal 9")]
)
async def test_a_process_that_dies_fails_its_attempt_and_is_replaced(how: str, said: str) -> None:
    async with processes() as on:
        report = await on.run("die", json.dumps({"how": how}))
        assert (report.end, report.retryable) == (End.FAIL, True)
        assert report.error is not None
        assert report.error["code"] == "handler_process_died"
        assert said in report.error["message"]
        assert (await on.run("add", '{"a": 1, "b": 1}')).result == "2"


@asynccontextmanager
async def pool_of_processes() -> AsyncIterator[ProcessPool]:
    pool = ProcessPool(no_services())
    try:
        yield pool
    finally:
        await pool.close()


async def run_in(pool: ProcessPool, task: str, payload: str = "{}") -> str | None:
    return (await pool.run(held_job(task, payload), process_app.app.tasks[task])).result


async def test_a_process_that_died_while_idle_is_not_used() -> None:
    """Also before the event loop has heard of its death: only the socket tells so far."""
    async with pool_of_processes() as pool:
        child = int(await run_in(pool, "pid") or "0")
        os.kill(child, signal.SIGKILL)
        # Blocks, so that the loop has no chance to hear of it before the next job.
        until(lambda: has_ended(child), "it is dead")
        assert await run_in(pool, "add", '{"a": 1, "b": 1}') == "2"


async def test_a_dead_process_whose_socket_is_still_open_is_not_used() -> None:
    """A process that the handler forked holds the other end: only the exit tells."""
    async with pool_of_processes() as pool:
        child, heir = json.loads(await run_in(pool, "fork") or "[]")
        try:
            os.kill(child, signal.SIGKILL)
            await eventually(lambda: not waits_for_exits(), "the loop was told")
            await asyncio.sleep(0)
            assert await run_in(pool, "add", '{"a": 1, "b": 1}') == "2"
        finally:
            os.kill(heir, signal.SIGKILL)


def waits_for_exits() -> bool:
    """Whether a thread of asyncio still waits for the exit of a process."""
    return any(thread.name.startswith("asyncio-waitpid") for thread in threading.enumerate())


async def test_the_hard_limit_kills_the_process(tmp_path: Path) -> None:
    async with processes() as on:
        held, child = await running(on, "wait", tmp_path)
        on.executor.stop_job(held, Stop.HARD_LIMIT)
        await on.until_reported(1)
        await eventually(lambda: not lives(child), "it is dead")
        assert on.reports[0].error is not None
        assert on.reports[0].error["code"] == "hard_limit_exceeded"
        assert not (tmp_path / "cleaned").exists()


@pytest.mark.parametrize(
    ("stop", "end"), [(Stop.CANCELLED, End.CANCEL), (Stop.SHUTDOWN, End.RELEASE)]
)
async def test_a_cancelled_handler_may_clean_up_and_its_process_ends_at_once(
    tmp_path: Path, stop: Stop, end: End, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Longer than any test: nothing but the handler's own end is in time.
    monkeypatch.setattr("trunkline.worker.process_pool._POLITE", 3600.0)
    async with processes() as on:
        held, child = await running(on, "wait", tmp_path)
        on.executor.stop_job(held, stop)
        await on.until_reported(1)
        assert (tmp_path / "cleaned").exists()
        assert not lives(child)
        assert on.reports[0].end is end
        assert (await on.run("add", '{"a": 1, "b": 1}')).result == "2"


async def test_a_handler_that_ignores_the_request_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.worker.process_pool._POLITE", 0.2)
    async with processes() as on:
        held, child = await running(on, "deaf", tmp_path)
        on.executor.stop_job(held, Stop.CANCELLED)
        await on.until_reported(1)
        assert not lives(child)


async def test_a_second_interruption_does_not_spare_the_process(tmp_path: Path) -> None:
    """Whoever waits for the polite end may be interrupted too."""
    async with processes() as on:
        held, child = await running(on, "deaf", tmp_path)
        on.executor.stop_job(held, Stop.CANCELLED)
        await asyncio.sleep(0)
        on.executor.stop_job(held, Stop.CANCELLED)
        await on.until_reported(1)
        await eventually(lambda: not lives(child), "it is dead")
        assert [report.end for report in on.reports] == [End.CANCEL]


async def test_closing_kills_what_still_runs(tmp_path: Path) -> None:
    async with processes() as on:
        _, child = await running(on, "wait", tmp_path)
        assert lives(child)
    await eventually(lambda: not lives(child), "it is dead")
    # Its end is nobody's to report: the lease brings the job back.
    assert on.reports == []


async def test_a_handler_that_cannot_be_imported_is_refused_with_a_hint() -> None:
    app = Trunkline("postgresql://nobody@nowhere/none")

    @app.task(process=True)
    def local() -> None:
        pass

    def script() -> None:
        pass

    script.__module__, script.__qualname__ = "__main__", "script"
    app.task(process=True)(script)
    async with stage(app) as on:
        for task in ("local", "script"):
            report = await on.run(task)
            assert report.error is not None
            assert report.error["code"] == "invalid_task"
            assert "cannot be imported" in report.error["message"]


async def test_a_name_that_leads_to_something_else_is_refused() -> None:
    async with processes() as on:
        report = await on.run("renamed")
        assert report.error is not None
        assert report.error["code"] == "invalid_task"


_PARENT = """
import asyncio, json, sys
from tests.worker import process_app
from tests.worker.scene import held_job, no_services
from tests.worker.stage import stage

async def main():
    async with stage(process_app.app, concurrency=1) as on:
        on.submit("wait", json.dumps({"folder": sys.argv[1]}))
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_a_process_ends_when_its_worker_is_killed(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(tmp_path)],
        cwd=REPOSITORY,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
    )
    try:
        found = await eventually(lambda: list(tmp_path.glob("runs-*")), "it runs")
        child = int(found[0].name.partition("-")[2])
    finally:
        parent.kill()
        parent.wait()
    assert await eventually(lambda: not lives(child), "it is dead")


@pytest.fixture
def at_work(scene: Scene) -> Scene:
    """The scene with the handlers of the module."""
    scene.app.tasks.update(process_app.app.tasks)
    scene.superuser.execute("create table notes (name text); grant all on notes to public")
    return scene


async def test_a_process_has_the_context_of_its_job(at_work: Scene) -> None:
    async with at_work.working(concurrency=1) as worker:
        (job,) = await at_work.enqueue("advance")
        found = await at_work.until_state(job, "completed")
    assert found.result == [1, "advance", worker.id, False]


async def test_progress_of_a_process_is_stored_and_returns_a_cancellation(
    at_work: Scene, tmp_path: Path
) -> None:
    """CP-50."""
    async with at_work.working(concurrency=1):
        (job,) = await at_work.enqueue("advance_for_ever", folder=str(tmp_path))
        await eventually(lambda: at_work.job(job).progress == 20, "progress is stored")
        found = at_work.job(job)
        assert (found.phase, found.message) == ("first", "a fifth")
        at_work.rows("select * from trunkline.cancel(%s)", job)
        await at_work.until_state(job, "cancelled")


async def test_a_process_commits_its_writes_with_the_completion_or_neither(at_work: Scene) -> None:
    async with at_work.working(concurrency=1):
        (good,) = await at_work.enqueue("post", name="kept")
        (bad,) = await at_work.enqueue("post", name="undone", error=True)
        found = await at_work.until_state(good, "completed")
        await eventually(lambda: at_work.job(bad).failures == 1, "it failed")
    assert found.result == {"noted": "kept"}
    assert [row.name for row in at_work.rows("select name from notes")] == ["kept"]


async def test_a_process_that_receives_a_cancellation_commits_nothing(at_work: Scene) -> None:
    """T14, CP-50."""
    async with at_work.working(concurrency=1):
        (job,) = await at_work.enqueue("post_when_cancelled", dsn=at_work.database.dsn)
        found = await at_work.until_state(job, "cancelled", "completed", "dead")
    assert (found.state, found.reason) == ("cancelled", "changed my mind")
    assert at_work.rows("select name from notes") == []

"""The end of a worker: nothing is lost, and nobody waits longer than need be."""

import asyncio
import threading
from typing import Any

import pytest

from tests.support.internals import rows
from tests.support.internals.workers import sleep_flags
from tests.worker.scene import DEADLINE, Scene, eventually
from trunkline.db.call import Call
from trunkline.db.lasting import LastingConnection
from trunkline.errors import ConnectionLost
from trunkline.worker.shutdown import Shutdown


class Play:
    """A task whose jobs run until they may end."""

    def __init__(self, scene: Scene) -> None:
        self.started: list[int] = []
        self.interrupted: list[int] = []
        self.go = asyncio.Event()

        @scene.app.task
        async def work(number: int = 0) -> int:
            self.started.append(number)
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                self.interrupted.append(number)
                raise
            return number

    async def until_started(self, count: int) -> None:
        await eventually(lambda: len(self.started) == count, f"{count} jobs run")


async def until_it_claims_no_more(scene: Scene) -> None:
    await eventually(
        lambda: (
            not scene.rows(
                "select from pg_stat_activity where application_name = 'trunkline claimer'"
                " and datname = current_database()"
            )
        ),
        "the claimer is gone",
    )


async def test_running_jobs_may_end_within_the_grace(scene: Scene) -> None:
    play = Play(scene)
    async with scene.running(concurrency=3, grace=30) as (worker, running):
        jobs = await scene.enqueue("work", 3)
        await play.until_started(3)
        worker.stop("SIGTERM")
        await until_it_claims_no_more(scene)
        assert not running.done()
        play.go.set()
        assert await running == 0
        assert {scene.state(job) for job in jobs} == {"completed"}
    assert play.interrupted == []


async def test_what_outlives_the_grace_is_interrupted_and_handed_back_unblamed(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    play = Play(scene)
    async with scene.running(concurrency=2, grace=0.2) as (worker, running):
        jobs = await scene.enqueue("work", 2)
        await play.until_started(2)
        worker.stop("SIGTERM")
        assert await running == 0
        found = [scene.job(job) for job in jobs]
    assert len(play.interrupted) == 2
    assert {(job.state, job.failures, job.reason) for job in found} == {
        ("ready", 0, "the worker shut down")
    }
    assert "interrupting job" in caplog.text


async def test_a_second_request_ends_the_grace(scene: Scene) -> None:
    play = Play(scene)
    async with scene.running(grace=3600) as (worker, running):
        (job,) = await scene.enqueue("work")
        await play.until_started(1)
        worker.stop("SIGTERM")
        await asyncio.sleep(0)
        worker.stop("SIGTERM")
        await running
        assert scene.state(job) == "ready"
    assert len(play.interrupted) == 1


async def test_jobs_that_have_not_started_are_claimable_by_others_at_once(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.worker.watch._STALLED", 3600.0)
    play = Play(scene)
    # So many were short that the worker claims ahead.
    play.go.set()
    async with scene.running(concurrency=1, grace=3600) as (worker, running):
        await scene.until_ended(await scene.enqueue("work", 300))
        play.go.clear()
        jobs = await scene.enqueue("work", 10)
        await eventually(
            lambda: rows.count(scene.superuser, "running") > 1,
            "some are claimed ahead",
        )
        await play.until_started(301)
        worker.stop("SIGTERM")
        await eventually(
            lambda: rows.count(scene.superuser, "running") == 1,
            "only the running one is still claimed",
        )
        states = sorted(scene.state(job) for job in jobs)
        assert states == ["ready"] * 9 + ["running"]
        assert len(scene.claim(1, worker="other")) == 1
        play.go.set()
        await running
    assert len(play.started) == 301


async def test_nothing_new_is_claimed_once_the_end_has_begun(scene: Scene) -> None:
    play = Play(scene)
    async with scene.running(concurrency=5, grace=3600) as (worker, running):
        await scene.enqueue("work")
        await play.until_started(1)
        worker.stop("SIGTERM")
        await until_it_claims_no_more(scene)
        (late,) = await scene.enqueue("work", number=9)
        play.go.set()
        await running
        assert scene.state(late) == "ready"
    assert play.started == [0]


async def test_the_last_ends_are_recorded_although_the_connection_breaks(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    play = Play(scene)
    original = LastingConnection.run
    lost = 0

    async def run(self: LastingConnection, call: Call[Any], **more: Any) -> Any:
        nonlocal lost
        if "trunkline.complete(" in call.sql and lost < 3:
            lost += 1
            await self.close()
            raise ConnectionLost("gone")
        return await original(self, call, **more)

    monkeypatch.setattr(LastingConnection, "run", run)
    async with scene.running(concurrency=2) as (worker, running):
        jobs = await scene.enqueue("work", 2)
        await play.until_started(2)
        worker.stop("SIGTERM")
        play.go.set()
        await running
        assert {scene.state(job) for job in jobs} == {"completed"}
    assert lost == 3


async def test_a_server_that_is_away_holds_up_the_end_for_a_bounded_time(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("trunkline.worker.shutdown._LAST_WORDS", 0.5)
    play = Play(scene)
    original = LastingConnection.run

    async def run(self: LastingConnection, call: Call[Any], **more: Any) -> Any:
        if "trunkline.complete(" in call.sql:
            raise ConnectionLost("gone")
        return await original(self, call, **more)

    monkeypatch.setattr(LastingConnection, "run", run)
    async with scene.running() as (worker, running):
        (job,) = await scene.enqueue("work")
        await play.until_started(1)
        play.go.set()
        worker.stop("SIGTERM")
        assert await running == 0
        assert scene.state(job) == "running"
    assert "1 job did not end; each returns when its lease expires" in caplog.text


async def test_a_thread_that_hangs_does_not_keep_the_worker_from_ending(scene: Scene) -> None:
    go = threading.Event()
    started, ended = threading.Event(), threading.Event()

    @scene.app.task
    def stuck() -> None:
        started.set()
        go.wait(DEADLINE)
        ended.set()

    async with scene.running(grace=0.1) as (worker, running):
        (job,) = await scene.enqueue("stuck")
        await eventually(started.is_set, "it runs")
        worker.stop("SIGTERM")
        await running
        assert not ended.is_set()
        assert scene.state(job) == "ready"
        go.set()


async def test_an_idle_worker_ends_at_once_and_deregisters(scene: Scene) -> None:
    Play(scene)
    async with scene.running(grace=3600) as (worker, running):
        await eventually(lambda: sleep_flags(scene.superuser), "idle")
        worker.stop("SIGTERM")
        assert await running == 0
        row = scene.rows(
            "select state, running from trunkline.workers where worker = %s", worker.id
        )
        assert [tuple(one) for one in row] == [("stopped", 0)]
        assert sleep_flags(scene.superuser) == []


async def test_nothing_of_a_worker_is_left_behind(scene: Scene) -> None:
    """No task, no thread, no connection."""
    play = Play(scene)
    before = {thread.name for thread in threading.enumerate()}
    async with scene.running(concurrency=3) as (worker, running):
        await scene.enqueue("work", 2)
        await play.until_started(2)
        play.go.set()
        worker.stop("SIGTERM")
        await running
        tasks = [task.get_name() for task in asyncio.all_tasks()]
        assert not [name for name in tasks if name.startswith("trunkline")]
        await scene.app.close()
        await eventually(
            lambda: (
                not scene.rows(
                    "select from pg_stat_activity where application_name like 'trunkline%%'"
                    " and datname = current_database()",
                )
            ),
            "all connections are closed",
        )
    threads = {thread.name for thread in threading.enumerate()} - before
    assert not [name for name in threads if name.startswith("trunkline")]


async def test_a_worker_whose_task_is_cancelled_hands_its_jobs_back(scene: Scene) -> None:
    """Who runs it inside a program of their own must not leave a heart that goes on."""
    play = Play(scene)
    async with scene.running(grace=3600) as (worker, running):
        (job,) = await scene.enqueue("work")
        await play.until_started(1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert scene.state(job) == "ready"
        assert scene.value("select state from trunkline.workers where worker = %s", worker.id) == (
            "stopped"
        )
        assert not any(thread.name == "trunkline heartbeats" for thread in threading.enumerate())


async def test_a_wish_and_a_hurry() -> None:
    shutdown = Shutdown(3600)
    waiting = asyncio.create_task(shutdown.wanted())
    await asyncio.sleep(0)
    assert not waiting.done()
    shutdown.want_once("first")
    shutdown.want_once("second")
    await waiting
    assert shutdown.reason == "first"

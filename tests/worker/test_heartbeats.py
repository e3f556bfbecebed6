"""The pulse of a worker and the heartbeats of its jobs (RC-30 to RC-33, CP-40)."""

import asyncio
import itertools
import logging
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.support.internals import jobs, workers
from tests.worker.scene import DEADLINE, Scene, eventually
from trunkline.db.call import Call
from trunkline.db.calls import work
from trunkline.db.lasting import LastingConnection
from trunkline.errors import ConnectionLost
from trunkline.worker.heartbeats import Heartbeats
from trunkline.worker.roster import HeldJob, Roster, Stop


class Chest:
    """A heart, the jobs it beats for, and what it said."""

    def __init__(self, scene: Scene, every: float) -> None:
        self.scene = scene
        self.roster = Roster()
        self.stopped: list[tuple[HeldJob, Stop]] = []
        self.states: list[str] = []
        self.heart = Heartbeats(
            scene.database.dsn,
            "w",
            self.roster,
            every=every,
            detail=lambda: {"held": len(self.roster)},
            stop_job=lambda held, stop: self.stopped.append((held, stop)),
            on_state=self.states.append,
            on_outdated=lambda error: self.states.append(error.code),
        )

    def hold(self, count: int) -> list[HeldJob]:
        return self.roster.add(self.scene.claim(count))

    def beaten(self) -> set[object]:
        """The jobs that had a heartbeat since their claim."""
        rows = self.scene.rows(
            "select job_id from trunkline.jobs"
            " where state = 'running' and heartbeat_at > claimed_at"
        )
        return {row.job_id for row in rows}


@asynccontextmanager
async def beating(scene: Scene, *, every: float = 0.05, hold: int = 0) -> AsyncIterator[Chest]:
    scene.register("w")
    chest = Chest(scene, every)
    chest.hold(hold) if hold else None
    chest.heart.start()
    try:
        yield chest
    finally:
        await chest.heart.stop()


async def until_pulse(scene: Scene) -> None:
    """Wait for the next one."""
    seen = scene.value("select seen_at from trunkline.workers")
    await eventually(
        lambda: scene.value("select seen_at > %s from trunkline.workers", seen), "a pulse"
    )


def make_old(*jobs: HeldJob) -> None:
    for held in jobs:
        held.last_beat -= 3600


async def test_the_pulse_goes_on_with_the_latest_detail(scene: Scene) -> None:
    async with beating(scene) as chest:
        await until_pulse(scene)
        chest.hold(3)
        await eventually(
            lambda: scene.value("select detail from trunkline.workers") == {"held": 3}, "the detail"
        )
        assert chest.states == []


async def test_only_jobs_that_run_for_a_while_are_heartbeated(scene: Scene) -> None:
    """RC-30, RC-33: every 15 s; a job that ends sooner needs none."""
    async with beating(scene) as chest:
        young, old = chest.hold(2)
        make_old(old)
        await eventually(chest.beaten, "a heartbeat")
        await until_pulse(scene)
        assert chest.beaten() == {old.job.job_id}
        assert old.last_beat > young.last_beat - 1


async def test_a_heartbeat_extends_the_lease(scene: Scene) -> None:
    """RC-31, CP-40: a recent heartbeat keeps the job."""
    lease = "select lease_expires_at from trunkline.jobs where state = 'running'"
    async with beating(scene) as chest:
        (held,) = chest.hold(1)
        before = scene.value(lease)
        make_old(held)
        await eventually(lambda: scene.value(lease) > before, "the lease is longer")
        assert chest.beaten() == {held.job.job_id}
        late = "select lease_expires_at - heartbeat_at from trunkline.jobs where state = 'running'"
        assert scene.value(late) == held.job.lease_expires_at - held.job.claimed_at


async def test_the_verdicts_cancel_and_lost_interrupt_their_jobs(scene: Scene) -> None:
    """RC-32, CP-40, CP-50."""
    async with beating(scene) as chest:
        cancelled, lost, fine = chest.hold(3)
        scene.rows("select * from trunkline.cancel(%s)", cancelled.job.job_id)
        jobs.reassign(scene.superuser, lost.job.job_id)
        make_old(cancelled, lost, fine)
        await eventually(lambda: len(chest.stopped) == 2, "two are interrupted")
        assert set(chest.stopped) == {(cancelled, Stop.CANCELLED), (lost, Stop.LOST)}


async def test_a_job_with_a_reason_to_ask_is_asked_about_at_once(scene: Scene) -> None:
    async with beating(scene) as chest:
        asked, other = chest.hold(2)
        scene.rows("select * from trunkline.cancel(%s)", asked.job.job_id)
        scene.rows("select * from trunkline.cancel(%s)", other.job.job_id)
        asked.beat_now = True
        await eventually(lambda: chest.stopped, "it is interrupted")
        assert chest.stopped == [(asked, Stop.CANCELLED)]
        assert not asked.beat_now


async def test_a_job_is_asked_about_again_when_no_answer_came(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = LastingConnection.run
    lost = 0

    async def run(self: LastingConnection, call: Call[Any], **more: Any) -> Any:
        nonlocal lost
        if "trunkline.heartbeat(" in call.sql and lost < 2:
            lost += 1
            raise ConnectionLost("gone")
        return await original(self, call, **more)

    monkeypatch.setattr(LastingConnection, "run", run)
    async with beating(scene) as chest:
        (asked,) = chest.hold(1)
        # No beat is due.
        asked.last_beat = time.monotonic() + 3600
        scene.rows("select * from trunkline.cancel(%s)", asked.job.job_id)
        asked.beat_now = True
        await eventually(lambda: chest.stopped, "it is interrupted")
        assert chest.stopped == [(asked, Stop.CANCELLED)]
    assert lost == 2


async def test_a_blocked_event_loop_does_not_cost_the_other_jobs_their_leases(
    scene: Scene,
) -> None:
    async with beating(scene) as chest:
        (held,) = chest.hold(1)
        make_old(held)
        end = time.monotonic() + DEADLINE
        # Nothing is awaited here: the loop stands still until the heartbeat has come.
        while not chest.beaten():
            assert time.monotonic() < end
            time.sleep(0.01)


def complaints(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """What the heart said while the loop stood in `block`; a busy machine may block it too."""
    return [
        record
        for record in caplog.records
        if "event loop has been blocked" in record.message and "in block\n" in record.message
    ]


def block(caplog: pytest.LogCaptureFixture, count: int = 1) -> None:
    """Hold up the event loop until the heart complains."""
    end = time.monotonic() + DEADLINE
    while len(complaints(caplog)) < count and time.monotonic() < end:
        time.sleep(0.01)


async def test_a_job_that_blocks_the_event_loop_is_logged_with_its_stack(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("trunkline.worker.heartbeats._BLOCKED", 0.4)

    @scene.app.task
    async def blocking() -> None:
        block(caplog)

    @scene.app.task
    async def innocent() -> None:
        await asyncio.Event().wait()

    async with scene.working():
        await scene.enqueue("innocent")
        (job,) = await scene.enqueue("blocking")
        await scene.until_state(job, "completed")
    (told, *_) = complaints(caplog)
    assert told.levelno == logging.WARNING
    assert f"task blocking, job {job}" in told.message
    assert "block(caplog)" in told.message
    assert getattr(told, "job_id", None) == str(job)
    assert "innocent" not in told.message


async def test_a_callback_that_blocks_is_blamed_on_no_job(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Jobs that have not started have no runner, and neither has a callback."""
    monkeypatch.setattr("trunkline.worker.heartbeats._BLOCKED", 0.4)
    async with beating(scene, hold=2):
        asyncio.get_running_loop().call_soon(block, caplog)
        await eventually(lambda: complaints(caplog), "the heart complains")
    assert "code that is not a handler" in complaints(caplog)[0].message


async def test_a_long_block_is_logged_again_only_when_it_has_doubled(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("trunkline.worker.heartbeats._BLOCKED", 0.2)
    async with beating(scene):
        block(caplog, count=3)
    lengths = [record.args[0] for record in complaints(caplog) if isinstance(record.args, tuple)]
    assert len(lengths) >= 3
    for one, next_one in itertools.pairwise(lengths):
        assert isinstance(one, float)
        assert isinstance(next_one, float)
        assert next_one >= 2 * one


async def test_the_heart_goes_on_after_its_connection_was_killed(scene: Scene) -> None:
    backend = (
        "select pid from pg_stat_activity"
        " where application_name = 'trunkline heartbeats' and datname = current_database()"
    )
    async with beating(scene):
        await eventually(lambda: scene.rows(backend), "it was connected")
        killed = scene.value(backend)
        assert scene.value("select pg_terminate_backend(%s)", killed)
        for _ in range(2):
            await until_pulse(scene)
        assert scene.value(backend) != killed


async def test_a_heart_that_stopped_leaves_no_thread_and_no_connection(scene: Scene) -> None:
    async with beating(scene) as chest:
        assert any(thread.name == "trunkline heartbeats" for thread in threading.enumerate())
        await chest.heart.stop()
        await chest.heart.stop()
    assert not any(thread.name == "trunkline heartbeats" for thread in threading.enumerate())
    await eventually(
        lambda: (
            not scene.rows(
                "select from pg_stat_activity where application_name = 'trunkline heartbeats'"
                " and datname = current_database()"
            )
        ),
        "the connection is closed",
    )


async def test_a_heart_that_never_started_can_be_stopped(scene: Scene) -> None:
    scene.register("w")
    chest = Chest(scene, 1)
    await chest.heart.stop()
    assert chest.states == []


async def test_a_worker_that_was_declared_dead_registers_again_and_is_notified_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.worker.pace._LATE_COMMITS", ())
    monkeypatch.setattr("trunkline.worker.pace._IDLE", (3600.0,))

    @scene.app.task
    async def work() -> int:
        return 1

    async with scene.working() as worker:
        await eventually(lambda: workers.sleep_flags(scene.superuser, worker.id), "it sleeps")
        workers.declare_gone(scene.superuser)
        await eventually(
            lambda: scene.value("select state from trunkline.workers") == "active", "it is back"
        )
        await eventually(lambda: workers.sleep_flags(scene.superuser, worker.id), "it sleeps again")
        (job,) = await scene.enqueue("work")
        found = await scene.until_state(job, "completed")
        assert found.worker == worker.id
        assert (found.claimed_at - found.run_at).total_seconds() < 60


async def test_a_drained_worker_finishes_what_it_runs_and_ends(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    go = asyncio.Event()
    started = asyncio.Event()

    @scene.app.task
    async def work() -> None:
        started.set()
        await go.wait()

    async with scene.working(concurrency=1) as worker:
        first, second = await scene.enqueue("work", 2)
        await started.wait()
        scene.rows("select trunkline.drain_worker(%s)", worker.id)
        await eventually(lambda: "drained by an operator" in caplog.text, "it heard of it")
        go.set()
        await scene.until_state(first, "completed")
        await eventually(
            lambda: scene.value("select state from trunkline.workers") == "stopped", "it ended"
        )
        assert scene.state(second) == "ready"


async def test_the_log_distinguishes_a_job_that_no_longer_exists_from_one_taken_over(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    """After an asynchronous failover the last claims may be gone from the server."""
    stopped = asyncio.Event()

    @scene.app.task
    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with scene.working():
        (job,) = await scene.enqueue("endless")
        running = await scene.until_state(job, "running")
        end = work.fail(running.worker, [job], [1], errors=[None], retryable=[False], delays=[None])
        assert [verdict.verdict for verdict in scene.call(end)] == ["ok"]
        scene.value("select trunkline.discard(p_job => %s)", job)

        def asked() -> bool:
            # A notification makes the worker ask about its job before the next heartbeat is due.
            scene.rows("select pg_notify('trunkline_cancel', %s)", str(job))
            return stopped.is_set()

        await eventually(asked, "the handler is stopped")
    assert f"job {job} was lost: the server has no such job; its handler is stopped" in caplog.text

"""Notifications: heard where they can be, done without where they cannot."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.support import pgbouncer
from tests.support.internals import workers
from tests.support.proxy import FaultProxy
from tests.worker.scene import DEADLINE, Scene, eventually
from trunkline.db.listener import Listener
from trunkline.worker.wakeup import Wakeup


class Ear:
    """A wake-up part and what it heard."""

    def __init__(self, dsn: str, queues: tuple[str, ...] | None) -> None:
        self.work = 0
        self.cancelled: list[uuid.UUID] = []
        self.part = Wakeup(
            dsn, queues=queues, on_work=self._on_work, on_cancel=self.cancelled.append
        )

    def _on_work(self) -> None:
        self.work += 1


@asynccontextmanager
async def listening(
    scene: Scene, *, queues: tuple[str, ...] | None = None, dsn: str | None = None
) -> AsyncIterator[Ear]:
    ear = Ear(dsn or scene.database.dsn, queues)
    ear.part.start()
    try:
        await eventually(lambda: ear.part.hears, "it hears")
        yield ear
    finally:
        await ear.part.stop()


def notify(scene: Scene, channel: str, payload: str) -> None:
    scene.rows("select pg_notify(%s, %s)", channel, payload)


async def test_it_wakes_once_when_it_begins_to_listen(scene: Scene) -> None:
    """What was enqueued before it listened announced itself to nobody."""
    async with listening(scene) as ear:
        assert ear.work == 1


async def test_new_work_is_heard(scene: Scene) -> None:
    async with listening(scene) as ear:
        notify(scene, "trunkline_wake", "anything")
        assert await eventually(lambda: ear.work == 2, "it heard")


async def test_only_queues_that_are_served_wake(scene: Scene) -> None:
    async with listening(scene, queues=("mine",)) as ear:
        notify(scene, "trunkline_wake", "foreign")
        notify(scene, "trunkline_wake", "mine")
        await eventually(lambda: ear.work == 2, "it heard")
        notify(scene, "trunkline_wake", "foreign")
        notify(scene, "trunkline_wake", "mine")
        await eventually(lambda: ear.work >= 3, "it heard again")
    # Notifications come in order: what was foreign would have been counted before.
    assert ear.work == 3


async def test_cancellations_are_heard_and_foreign_words_are_not(scene: Scene) -> None:
    """Every login of the database may send on a channel."""
    job = uuid.uuid4()
    async with listening(scene) as ear:
        for payload in ("", "x" * 5000, "drop table", str(job)):
            notify(scene, "trunkline_cancel", payload)
        await eventually(lambda: ear.cancelled, "it heard")
        assert ear.cancelled == [job]
        assert ear.part.hears


async def test_it_hears_again_after_its_connection_was_killed(scene: Scene) -> None:
    async with listening(scene) as ear:
        scene.rows(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where application_name = 'trunkline listener' and datname = current_database()"
        )
        await eventually(lambda: ear.work == 2, "it listens again")
        notify(scene, "trunkline_wake", "default")
        assert await eventually(lambda: ear.work == 3, "it heard")


async def test_a_connection_that_freezes_is_found_and_replaced(scene: Scene) -> None:
    """It stays open and acknowledges every packet: only the missing echo tells."""
    with FaultProxy.before(scene.database.dsn) as proxy:
        async with listening(scene, dsn=proxy.dsn(scene.database.dsn)) as ear:
            assert proxy.blackhole_present()
            await eventually(lambda: ear.work == 2, "it listens again")
            notify(scene, "trunkline_wake", "default")
            assert await eventually(lambda: ear.work == 3, "it heard")


async def test_a_stop_does_not_wait_for_the_silence_to_end(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.worker.wakeup._POLL_EVERY", 3600.0)
    async with listening(scene) as ear:
        await ear.part.stop()
        assert not ear.part.hears


async def test_where_no_echo_comes_nothing_is_expected(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("trunkline.worker.wakeup._TRY_AGAIN", 0.05)
    echoes = iter([False, False, True])

    async def listen(_self: Listener) -> bool:
        return next(echoes, True)

    monkeypatch.setattr(Listener, "listen", listen)
    ear = Ear(scene.database.dsn, None)
    ear.part.start()
    await eventually(lambda: ear.part.hears, "a later try succeeds")
    await ear.part.stop()
    warnings = [record for record in caplog.records if "no notifications" in record.message]
    assert len(warnings) == 1
    assert "--listen-dsn" in warnings[0].message


@pytest.mark.skipif(not pgbouncer.PROGRAM.exists(), reason="PgBouncer is not installed")
async def test_behind_a_transaction_pooler_the_listener_reports_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pgbouncer.start(scene.database.server) as pooler:
        behind = Listener(pooler.dsn(scene.database.dsn), lambda _channel, _payload: None)
        direct = Listener(scene.database.dsn, lambda _channel, _payload: None)
        try:
            monkeypatch.setattr("trunkline.db.listener._TEST_WAIT", 0.3)
            assert not await behind.listen()
            monkeypatch.setattr("trunkline.db.listener._TEST_WAIT", DEADLINE)
            assert await direct.listen()
        finally:
            await behind.close()
            await direct.close()


async def test_a_deaf_worker_finds_new_work_by_looking(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def listen(_self: Listener) -> bool:
        return False

    monkeypatch.setattr(Listener, "listen", listen)

    @scene.app.task
    async def work() -> None:
        pass

    async with scene.working():
        await eventually(lambda: workers.sleep_flags(scene.superuser), "it is idle")
        for _ in range(2):
            (job,) = await scene.enqueue("work")
            found = await scene.until_state(job, "completed")
            assert found.failures == 0


async def test_a_forged_cancellation_cancels_nothing(scene: Scene) -> None:
    """The channel only says that there is reason to ask the engine."""
    go = asyncio.Event()
    started = asyncio.Event()

    @scene.app.task
    async def work() -> str:
        started.set()
        await go.wait()
        return "not disturbed"

    async with scene.working():
        (job,) = await scene.enqueue("work")
        await started.wait()
        notify(scene, "trunkline_cancel", str(job))
        await eventually(
            lambda: scene.value("select heartbeat_at > claimed_at from trunkline.job(%s)", job),
            "the engine was asked",
        )
        go.set()
        found = await scene.until_state(job, "completed", "cancelled")
        assert found.result == "not disturbed"


async def test_a_cancellation_reaches_a_running_handler_at_once(scene: Scene) -> None:
    """CP-50."""
    started, interrupted = asyncio.Event(), asyncio.Event()

    @scene.app.task
    async def work() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            interrupted.set()
            raise

    async with scene.working():
        (job,) = await scene.enqueue("work")
        await started.wait()
        await scene.app.jobs.cancel(job, "no longer wanted")
        await interrupted.wait()
        found = await scene.until_state(job, "cancelled")
        assert found.reason == "no longer wanted"

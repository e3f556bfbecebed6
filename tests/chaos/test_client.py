"""What a producer meets when the server or the network fails: a clear answer, never a lost job."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from uuid import UUID

import pytest

from tests.chaos.private_server import PrivateServer
from tests.chaos.scene import Scene
from tests.support.calls import Calls
from tests.support.proxy import FaultProxy
from tests.support.waiting import together
from trunkline import Trunkline
from trunkline.errors import ConnectionLost, DatabaseProblem, DatabaseUnreachable

# Within this a call that can never be answered has to end.
PATIENCE = 150.0


@pytest.fixture
def proxy(scene: Scene) -> Iterator[FaultProxy]:
    with FaultProxy.before(scene.database.dsn) as made:
        yield made


def complete(scene: Scene, job: UUID) -> None:
    """Do what a worker would do with it."""
    calls = Calls(scene.superuser)
    claim = calls.claim("by hand", 1)
    assert claim.jobs == [job]
    calls.batch("complete", "by hand", claim.attempts)


def jobs_there(scene: Scene) -> int:
    found: int = scene.value("select count(*) from trunkline.jobs")
    return found


def test_waiting_outlives_a_restart_of_the_server(
    private_server: PrivateServer, private_scene: Scene
) -> None:
    scene = private_scene
    [job] = scene.enqueue("by_hand")
    app = Trunkline(scene.database.dsn)

    async def wait() -> object:
        async with app:
            return await app.jobs.wait(job, timeout=180)

    def restart() -> object:
        scene.until(
            lambda: scene.value(
                "select count(*) > 0 from pg_stat_activity where datname = current_database() "
                "and usename = 'trunkline_installer'"
            ),
            "the client is connected",
        )
        private_server.stop()
        private_server.start()
        complete(scene, job)
        return "restarted"

    assert together([lambda: asyncio.run(wait()), restart]) == [None, "restarted"]


def test_blocking_waits_outlive_killed_connections(scene: Scene) -> None:
    [job] = scene.enqueue("by_hand")

    def wait() -> object:
        with Trunkline(scene.database.dsn).sync as client:
            return client.jobs.wait(job, timeout=180)

    def kill() -> object:
        killed = 0
        while killed < 3:
            killed += scene.value(
                "select count(pg_terminate_backend(pid)) from pg_stat_activity "
                "where datname = current_database() and usename = 'trunkline_installer'"
            )
        complete(scene, job)
        return "killed"

    assert together([wait, kill]) == [None, "killed"]


def test_an_enqueue_whose_answer_is_lost_can_be_repeated(scene: Scene, proxy: FaultProxy) -> None:
    """The server carries it out and the client cannot know. The key makes it once."""
    with Trunkline(proxy.dsn(scene.database.dsn)).sync as client:
        client.jobs.enqueue("by_hand")
        # Only the enqueue itself, not the ping that the pool may send before it.
        proxy.marker = b"order 1"

        def enqueue() -> str:
            with pytest.raises(ConnectionLost) as caught:
                client.jobs.enqueue("by_hand", idempotency_key="order 1")
            return caught.value.hint

        def cut_when_done() -> str:
            scene.until(lambda: jobs_there(scene) == 2, "the enqueue is carried out")
            proxy.marker = b""
            [link] = [link for link in proxy.links if link.mute]
            link.cut()
            return "cut"

        hint, _ = together([enqueue, cut_when_done])
        assert "idempotency_key" in hint
        again = client.jobs.enqueue("by_hand", idempotency_key="order 1")
    assert not again.created
    assert jobs_there(scene) == 2


@pytest.mark.slow
def test_a_silent_connection_is_abandoned(scene: Scene, proxy: FaultProxy) -> None:
    app = Trunkline(proxy.dsn(scene.database.dsn))

    async def produce() -> None:
        async with app:
            await app.jobs.enqueue("by_hand")
            proxy.blackhole_present()
            began = time.monotonic()
            async with asyncio.timeout(2 * PATIENCE):
                with suppress(DatabaseProblem):
                    await app.jobs.enqueue("by_hand", idempotency_key="one")
                await app.jobs.enqueue("by_hand", idempotency_key="one")
            assert time.monotonic() - began < PATIENCE

    asyncio.run(produce())
    assert jobs_there(scene) == 2


@pytest.mark.slow
def test_a_blocking_call_on_a_silent_connection_is_abandoned(
    scene: Scene, proxy: FaultProxy
) -> None:
    with Trunkline(proxy.dsn(scene.database.dsn)).sync as client:
        client.jobs.enqueue("by_hand")
        silenced = proxy.blackhole_present()

        def produce() -> str:
            with suppress(DatabaseProblem):
                client.jobs.enqueue("by_hand", idempotency_key="one")
            client.jobs.enqueue("by_hand", idempotency_key="one")
            return "enqueued"

        try:
            assert together([produce], deadline=PATIENCE) == ["enqueued"]
        finally:
            # A thread that still hangs must not hang the run.
            for link in silenced:
                link.cut()
    assert jobs_there(scene) == 2


def test_a_server_that_is_away_is_named_at_once(scene: Scene, proxy: FaultProxy) -> None:
    proxy.refuse()
    with Trunkline(proxy.dsn(scene.database.dsn)).sync as client:
        with pytest.raises(DatabaseUnreachable) as caught:
            client.jobs.enqueue("by_hand")
        assert "TRUNKLINE_DSN" in caught.value.hint
        proxy.open()
        client.jobs.enqueue("by_hand")
    assert jobs_there(scene) == 1

"""Everything through PgBouncer in transaction mode, where no session is one's own."""

import asyncio
import time
from collections.abc import Iterator
from uuid import UUID

import psycopg
import pytest

from tests.chaos.scene import Scene
from tests.chaos.test_server import require_resumed, terminate_connections
from tests.support import pgbouncer
from tests.support.pgbouncer import PgBouncer
from trunkline import Trunkline

SIZE = 3


@pytest.fixture
def pooler(scene: Scene) -> Iterator[PgBouncer]:
    with pgbouncer.start(scene.database.server, size=SIZE) as made:
        yield made


@pytest.mark.parametrize("listens", [True, False], ids=["listening", "polling"])
def test_a_worker_works_through_a_pooler(scene: Scene, pooler: PgBouncer, listens: bool) -> None:
    """With a direct connection to listen on, and with nothing but polling."""
    worker = scene.start(
        "--concurrency",
        "10",
        dsn=pooler.dsn(scene.database.dsn),
        listen_dsn=scene.database.dsn if listens else None,
    )
    held = scene.enqueue("gated", 3, gate="meanwhile")
    scene.until_running(held)
    scene.enqueue("quick", 300)
    scene.enqueue("posted", 50)
    retried = scene.enqueue("fails_once", 5)
    scene.until_all("completed", [job for job in scene.jobs if job not in held])
    scene.open("meanwhile")
    scene.until_all("completed")
    assert {scene.job(job).attempt for job in held} == {1}
    assert {scene.job(job).attempt for job in retried} == {2}
    # An idle worker picks up what comes.
    require_resumed(scene, worker, time.monotonic())
    assert not worker.says("prepared statement")
    [pool] = [row for row in pooler.shows("pools") if row["database"] == scene.database.name]
    assert int(str(pool["sv_active"])) + int(str(pool["sv_idle"])) <= SIZE
    scene.require_balance()


def test_nothing_listens_on_a_shared_server_connection(scene: Scene) -> None:
    """A LISTEN that stays behind there made PgBouncer 1.18 swap the answers of its clients."""
    with pgbouncer.start(scene.database.server, size=1) as pooler:
        dsn = pooler.dsn(scene.database.dsn)
        worker = scene.start(dsn=dsn)
        scene.until(lambda: worker.says("--listen-dsn"), "the worker knows that it hears nothing")
        with psycopg.connect(dsn, autocommit=True) as shared:
            assert shared.execute("select * from pg_listening_channels()").fetchall() == []
        scene.until_all("completed", scene.enqueue("quick", 10))
    scene.require_balance()


def test_a_client_works_through_a_pooler(scene: Scene, pooler: PgBouncer) -> None:
    scene.start(dsn=pooler.dsn(scene.database.dsn))

    async def produce() -> list[UUID]:
        async with Trunkline(pooler.dsn(scene.database.dsn)) as app:
            made = [await app.jobs.enqueue("quick", {"number": number}) for number in range(30)]
            results = [await app.jobs.wait(job.id, timeout=180) for job in made]
            assert results == list(range(30))
            [first, *_] = await app.jobs.list(task="quick", limit=100)
            assert (await app.jobs.get(first.id)).state == "completed"
        return [job.id for job in made]

    scene.jobs += asyncio.run(produce())
    scene.require_balance()


def test_a_synchronous_client_works_through_a_pooler(scene: Scene, pooler: PgBouncer) -> None:
    scene.start(dsn=pooler.dsn(scene.database.dsn))
    app = Trunkline(pooler.dsn(scene.database.dsn))
    with app.sync:
        made = [app.sync.jobs.enqueue("quick", {"number": number}) for number in range(30)]
        assert [app.sync.jobs.wait(job.id, timeout=180) for job in made] == list(range(30))
    scene.jobs += [job.id for job in made]
    scene.require_balance()


def test_the_connections_behind_the_pooler_are_killed(scene: Scene, pooler: PgBouncer) -> None:
    worker = scene.start("--concurrency", "4", dsn=pooler.dsn(scene.database.dsn))
    for _ in range(3):
        scene.enqueue("quick", 100)
        posted = scene.enqueue("posted", 10)
        terminate_connections(scene)
        require_resumed(scene, worker, time.monotonic())
        scene.until_all("completed", posted)
    scene.until_all("completed")
    scene.require_balance()
    assert scene.states(scene.jobs) == {"completed": len(scene.jobs)}


def test_the_pooler_itself_is_restarted(scene: Scene, pooler: PgBouncer) -> None:
    worker = scene.start("--concurrency", "4", dsn=pooler.dsn(scene.database.dsn))
    held = scene.enqueue("gated", 2, gate="meanwhile")
    scene.until_running(held)
    pooler.stop()
    scene.open("meanwhile")
    scene.until(
        lambda: worker.says("database_unreachable") or worker.says("connection_lost"),
        "the worker says that the pooler is gone",
    )
    pooler.start()
    require_resumed(scene, worker, time.monotonic())
    scene.until_all("completed")
    scene.require_balance()
    assert scene.states(scene.jobs) == {"completed": len(scene.jobs)}

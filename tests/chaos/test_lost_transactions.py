"""Transactions of handlers that break with the server or the network: no job dies of it."""

import signal
from uuid import UUID

import pytest

from tests.chaos.private_server import PrivateServer
from tests.chaos.scene import Scene
from tests.support.proxy import FaultProxy

TASKS = ("posts_once", "posts_once_thread", "posts_once_process")
EACH = 3


def enqueue_transactions(scene: Scene) -> list[UUID]:
    """Enqueue jobs with a single attempt and wait until each is in its transaction."""
    jobs = [job for task in TASKS for job in scene.enqueue(task, EACH, gate="on")]
    scene.until(
        lambda: (
            scene.value(
                "select count(*) from pg_stat_activity where datname = current_database()"
                " and state = 'idle in transaction' and query ~ 'chaos.postings'"
            )
            == len(jobs)
        ),
        "all are in their transactions",
    )
    return jobs


def require_no_blame(scene: Scene, jobs: list[UUID]) -> None:
    scene.until_all("completed", jobs)
    scene.require_balance()
    assert {scene.job(job).failures for job in jobs} == {0}
    assert min(scene.job(job).attempt for job in jobs) >= 2


@pytest.mark.parametrize("number", [signal.SIGQUIT, signal.SIGINT], ids=["immediate", "fast"])
def test_a_restart_within_transactions_kills_no_job(
    private_server: PrivateServer, private_scene: Scene, number: signal.Signals
) -> None:
    worker = private_scene.start("--concurrency", str(3 * EACH))
    jobs = enqueue_transactions(private_scene)
    private_server.stop(number)
    private_scene.open("on")
    private_server.start()
    require_no_blame(private_scene, jobs)
    worker.require_alive()


def test_a_network_that_breaks_within_transactions_kills_no_job(scene: Scene) -> None:
    with FaultProxy.before(scene.database.dsn) as proxy:
        worker = scene.start("--concurrency", str(3 * EACH), dsn=proxy.dsn(scene.database.dsn))
        jobs = enqueue_transactions(scene)
        proxy.cut()
        scene.open("on")
        require_no_blame(scene, jobs)
        worker.require_alive()

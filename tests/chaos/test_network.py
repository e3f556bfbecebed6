"""A network that falls silent, resets and returns, between a worker and its server."""

import time
from collections.abc import Iterator

import pytest

from tests.chaos.scene import RETURN, Scene
from tests.chaos.test_server import require_resumed
from tests.support.proxy import FaultProxy
from tests.support.worker_process import WorkerProcess


@pytest.fixture
def proxy(scene: Scene) -> Iterator[FaultProxy]:
    with FaultProxy.before(scene.database.dsn) as made:
        yield made


@pytest.fixture
def worker(scene: Scene, proxy: FaultProxy) -> WorkerProcess:
    """A worker whose every connection goes through the proxy."""
    return scene.start("--concurrency", "4", dsn=proxy.dsn(scene.database.dsn))


def until_gone(scene: Scene, worker: WorkerProcess) -> None:
    """Wait until another one has noticed the silence; a third party does the duties here."""
    scene.expect_deaths()

    def gone() -> bool:
        scene.run_duties()
        state: str = scene.value("select state from trunkline.workers where pid = %s", worker.pid)
        return state == "gone"

    scene.until(gone, "the silent worker is given up")


def test_silence_longer_than_the_pulse(
    scene: Scene, proxy: FaultProxy, worker: WorkerProcess
) -> None:
    """Half-open for so long that the worker is given up and its work goes to another.

    It ends its attempts meanwhile, and tells so while the others are still at theirs.
    """
    held = scene.enqueue("gated", 2, gate="meanwhile")
    scene.until_running(held)
    proxy.blackhole()
    until_gone(scene, worker)
    other = scene.start()
    scene.until_running(held, attempt=2)
    scene.open("meanwhile", attempt=1)
    scene.until(lambda: len([r for r in scene.runs(*held) if r.finished]) == 2, "they have ended")
    proxy.open()
    back = time.monotonic()
    scene.until(
        lambda: (
            scene.value("select state from trunkline.workers where pid = %s", worker.pid)
            == "active"
        ),
        "the worker is back",
    )
    assert time.monotonic() - back <= RETURN
    scene.until(
        lambda: all(worker.says(str(job), "refused") for job in held), "its late ends are refused"
    )
    assert scene.states(held) == {"running": 2}
    scene.open("meanwhile", attempt=2)
    scene.until_all("completed", held)
    assert {run.pid for run in scene.runs(*held) if run.attempt == 2} == {other.pid}
    assert {scene.job(job).attempt for job in held} == {2}
    scene.until_all("completed", scene.enqueue("quick", 20))
    worker.require_alive()
    scene.require_balance()


def test_connections_that_stay_silent_for_ever_are_replaced(
    scene: Scene, proxy: FaultProxy, worker: WorkerProcess
) -> None:
    held = scene.enqueue("gated", 2, gate="meanwhile")
    scene.until_running(held)
    silenced = proxy.blackhole_present()
    assert silenced
    since = time.monotonic()
    scene.open("meanwhile")
    require_resumed(scene, worker, since)
    scene.until_all("completed")
    scene.require_balance()


def test_resets_under_load(scene: Scene, proxy: FaultProxy, worker: WorkerProcess) -> None:
    """A reset is noticed at once; nobody waits until he has lost his patience."""
    taken = []
    for _ in range(8):
        scene.enqueue("quick", 100)
        posted = scene.enqueue("posted", 10)
        scene.until(lambda: len(proxy.links) > 0, "the worker is connected")
        proxy.cut()
        taken.append(require_resumed(scene, worker, time.monotonic()))
        scene.until_all("completed", posted)
    scene.until_all("completed")
    scene.require_balance()
    assert scene.states(scene.jobs) == {"completed": len(scene.jobs)}
    # A busy machine may hold up some of them, but not all.
    assert min(taken) < 7


def test_a_network_that_refuses_until_it_returns(
    scene: Scene, proxy: FaultProxy, worker: WorkerProcess
) -> None:
    held = scene.enqueue("gated", 2, gate="meanwhile")
    scene.until_running(held)
    proxy.refuse()
    until_gone(scene, worker)
    scene.open("meanwhile")
    proxy.open()
    require_resumed(scene, worker, time.monotonic())
    scene.until_all("completed")
    scene.require_balance()
    assert scene.states(scene.jobs) == {"completed": len(scene.jobs)}


def test_answers_that_never_arrive(scene: Scene, proxy: FaultProxy, worker: WorkerProcess) -> None:
    """Half-closed: what the worker says is carried out, but it hears no answer."""
    for _ in range(3):
        scene.enqueue("quick", 50)
        posted = scene.enqueue("posted", 10)
        for link in proxy.links:
            link.close_half()
        require_resumed(scene, worker, time.monotonic())
        scene.until_all("completed", posted)
    scene.until_all("completed")
    # What was claimed in an answer that never arrived is handed back, not left to its lease.
    assert scene.lost(*scene.jobs) == []
    scene.require_balance()


def test_a_slow_network_is_only_slow(
    scene: Scene, proxy: FaultProxy, worker: WorkerProcess
) -> None:
    proxy.slow(0.1)
    held = scene.enqueue("gated", 2, gate="meanwhile")
    scene.until_running(held)
    scene.until_all("completed", scene.enqueue("quick", 20))
    scene.open("meanwhile")
    scene.until_all("completed")
    # What was claimed and could not start within a second is handed back: that is no failure.
    assert {scene.job(job).failures for job in scene.jobs} == {0}
    assert scene.lost(*scene.jobs) == []
    scene.require_balance()

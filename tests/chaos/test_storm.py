"""Workers die all the time, and the books are exact."""

import random
import signal
import time

import pytest

from tests.chaos.private_server import PrivateServer
from tests.chaos.scene import Scene
from tests.support.worker_process import WorkerProcess

JOBS = 2000
SECONDS = 10.0


def enqueue_mixture(scene: Scene, count: int) -> None:
    """Short jobs, jobs that write in the transaction of their end, and jobs that a kill meets."""
    for _ in range(count // 200):
        scene.enqueue("quick", 100)
        scene.enqueue("posted", 60)
        scene.enqueue("dawdles", 40)


def replace_one(scene: Scene, crew: list[WorkerProcess], rng: random.Random) -> None:
    """Kill one worker; its successor is ready before the next one dies, about a second later."""
    victim = rng.choice(crew)
    victim.signal(signal.SIGKILL)
    victim.until_ended()
    crew.remove(victim)
    crew.append(scene.start("--concurrency", "10"))


@pytest.mark.slow
def test_two_workers_two_thousand_jobs_and_a_kill_every_second(private_scene: Scene) -> None:
    """Invariants 1 and 2 with real processes: every job ends once, every posting is there once."""
    scene = private_scene
    rng = random.Random(11)
    crew = [scene.start("--concurrency", "10") for _ in range(2)]
    scene.expect_deaths()
    enqueue_mixture(scene, JOBS)
    kills = 0
    over = time.monotonic() + SECONDS
    while time.monotonic() < over or kills < 3:
        replace_one(scene, crew, rng)
        kills += 1
    scene.until_all("completed")
    scene.require_balance()
    assert "worker_gone" in scene.lost(*scene.jobs), "no kill met any work"
    assert scene.value("select max(attempt) from trunkline.jobs") > 1


@pytest.mark.slow
def test_workers_and_the_server_are_killed(
    private_server: PrivateServer, private_scene: Scene
) -> None:
    scene = private_scene
    rng = random.Random(12)
    crew = [scene.start("--concurrency", "10") for _ in range(2)]
    scene.expect_deaths()
    for _ in range(2):
        enqueue_mixture(scene, JOBS // 4)
        private_server.stop(signal.SIGKILL)
        private_server.start()
        replace_one(scene, crew, rng)
    scene.until_all("completed")
    scene.require_balance()

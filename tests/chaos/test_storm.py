"""Workers die all the time, and the books are exact."""

import random
import signal
import time

import pytest

from tests.chaos.scene import Scene
from tests.support.worker_process import WorkerProcess

JOBS = 2000
SECONDS = 10.0


@pytest.mark.slow
def test_two_workers_two_thousand_jobs_and_a_kill_every_second(scene: Scene) -> None:
    """Invariants 1 and 2 with real processes: every job ends once, every posting is there once."""
    rng = random.Random(11)
    crew: list[WorkerProcess] = [scene.start("--concurrency", "10") for _ in range(2)]
    for _ in range(JOBS // 200):
        scene.enqueue("quick", 100)
        scene.enqueue("posted", 60)
        scene.enqueue("dawdles", 40)
    kills = 0
    over = time.monotonic() + SECONDS
    while time.monotonic() < over:
        # A second apart at most, and never all at rest: a new one is ready before the next dies.
        victim = rng.choice(crew)
        victim.signal(signal.SIGKILL)
        victim.until_ended()
        kills += 1
        crew.remove(victim)
        crew.append(scene.start("--concurrency", "10"))
    scene.until_all("completed", deadline=90)
    scene.require_balance()
    assert kills >= 3
    assert scene.lost(*scene.jobs), "no kill met any work"
    assert scene.value("select max(attempt) from trunkline.jobs") > 1

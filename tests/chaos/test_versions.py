"""The schema is upgraded under a worker that is too old for it."""

import pytest

from tests.chaos.scene import Scene
from tests.support import newer
from trunkline.schema import CONTRACT

OUTDATED = 4


@pytest.mark.parametrize("processes", [1, 2])
def test_a_worker_that_is_too_old_ends_what_it_runs_and_exits(scene: Scene, processes: int) -> None:
    """It says which package it needs, and the supervisor starts no successor."""
    worker = scene.start("--concurrency", "2", "--processes", str(processes), processes=processes)
    held = scene.enqueue("gated", 2 * processes, gate="on")
    scene.until_running(held)
    newer.apply_contract(scene.superuser, oldest=CONTRACT + 1)
    scene.until(
        lambda: worker.log.count("shutting down (this package is too old") == processes,
        "every process noticed",
    )
    late = scene.enqueue("quick")
    scene.open("on")
    assert worker.until_ended(60) == OUTDATED
    assert scene.states(held) == {"completed": len(held)}
    assert {scene.job(job).attempt for job in held} == {1}
    assert scene.states(late) == {"ready": 1}
    assert worker.says("schema_newer_than_client", f"trunkline>={newer.RELEASE}")
    assert "successor starts" not in worker.log


@pytest.mark.parametrize("processes", [1, 2])
def test_a_worker_that_is_too_old_does_not_start(scene: Scene, processes: int) -> None:
    newer.apply_contract(scene.superuser, oldest=CONTRACT + 1)
    worker = scene.launch("--processes", str(processes))
    assert worker.until_ended(60) == OUTDATED
    assert worker.says("schema_newer_than_client")
    assert worker.says(f"trunkline>={newer.RELEASE}")
    assert "successor starts" not in worker.log


def test_a_worker_that_is_still_served_goes_on(scene: Scene) -> None:
    worker = scene.start()
    newer.apply_contract(scene.superuser, oldest=CONTRACT)
    pulse = "select detail, seen_at from trunkline.workers where pid = %s"
    before = scene.superuser.execute(pulse.encode(), (worker.pid,)).fetchone()
    scene.until(
        lambda: scene.superuser.execute(pulse.encode(), (worker.pid,)).fetchone() != before,
        "it has seen the new contract",
    )
    scene.until_all("completed", scene.enqueue("quick"))
    worker.require_alive()

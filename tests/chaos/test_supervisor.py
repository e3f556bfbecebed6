"""Several processes under one supervisor."""

import os
import signal

import pytest

from tests.chaos.scene import Scene
from tests.support.worker_process import WorkerProcess, descendants, lives


def live_pids(scene: Scene, worker: WorkerProcess) -> set[int]:
    """The registered worker processes of this supervisor that live."""
    rows = scene.superuser.execute(
        "select pid from trunkline.workers where state = 'active' and pid = any(%s)",
        (descendants(worker.pid),),
    ).fetchall()
    return {row[0] for row in rows}


def test_a_killed_child_is_replaced(scene: Scene) -> None:
    worker = scene.start("--processes", "2", "--concurrency", "2", processes=2)
    before = live_pids(scene, worker)
    assert len(before) == 2
    held = scene.enqueue("gated", 4, gate="later")
    scene.until_running(held)
    victim = scene.runs(*held)[0].pid
    assert victim in before
    scene.expect_deaths()
    os.kill(victim, signal.SIGKILL)
    after = scene.until(
        lambda: (found := live_pids(scene, worker)) != before and len(found) == 2 and found,
        "the supervisor replaced the killed process",
    )
    assert after
    assert victim not in after
    lost = {run.job for run in scene.runs(*held) if run.pid == victim}
    scene.until_running(list(lost), attempt=2)
    scene.open("later")
    scene.until_all("completed")
    worker.signal(signal.SIGTERM)
    assert worker.until_ended() == 0
    scene.require_balance()


def test_sigterm_to_the_supervisor_ends_every_process(scene: Scene) -> None:
    worker = scene.start("--processes", "2", "--concurrency", "2", processes=2)
    family = descendants(worker.pid)
    held = scene.enqueue("gated", 4, gate="later")
    scene.until_running(held)
    worker.signal(signal.SIGTERM)
    scene.until(
        lambda: worker.says("shutting down"), "the supervisor says that it is shutting down"
    )
    scene.open("later")
    assert worker.until_ended() == 0
    assert scene.states(held) == {"completed": 4}
    assert [pid for pid in family if lives(pid)] == []
    scene.require_balance()


@pytest.mark.parametrize("processes", [1, 2])
def test_sighup_lets_running_jobs_end(scene: Scene, processes: int) -> None:
    """A terminal that closes sends it to the supervisor and to the workers."""
    worker = scene.start("--processes", str(processes), "--concurrency", "2", processes=processes)
    held = scene.enqueue("gated", 2 * processes, gate="later")
    scene.until_running(held)
    for pid in descendants(worker.pid) if processes > 1 else []:
        os.kill(pid, signal.SIGHUP)
    worker.signal(signal.SIGHUP)
    scene.until(lambda: worker.log.count("shutting down") == processes, "they shut down")
    scene.open("later")
    assert worker.until_ended(30) == 0
    assert scene.states(held) == {"completed": 2 * processes}
    assert not worker.says("interrupting")
    scene.require_balance()


@pytest.mark.parametrize("processes", [1, 2])
def test_under_nohup_sighup_stays_ignored(scene: Scene, processes: int) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        worker = scene.start("--processes", str(processes), processes=processes)
    finally:
        signal.signal(signal.SIGHUP, before)
    for pid in (*descendants(worker.pid), worker.pid):
        os.kill(pid, signal.SIGHUP)
    scene.until_all("completed", scene.enqueue("quick", 3))
    assert not worker.says("shutting down")
    worker.signal(signal.SIGTERM)
    assert worker.until_ended(30) == 0
    scene.require_balance()


def test_a_killed_supervisor_leaves_no_worker_behind(scene: Scene) -> None:
    """Or a restart of the service would run twice as many processes."""
    worker = scene.start("--processes", "2", processes=2)
    family = descendants(worker.pid)
    assert len(family) >= 2
    held = scene.enqueue("gated", 2, gate="later")
    scene.until_running(held)
    scene.expect_deaths()
    worker.kill()
    scene.until(lambda: not [pid for pid in family if lives(pid)], "the processes ended")
    scene.start()
    scene.open("later")
    scene.until_all("completed")
    scene.require_balance()


def test_a_process_over_its_memory_limit_drains_and_is_replaced(scene: Scene) -> None:
    worker = scene.start(
        "--processes", "2", "--concurrency", "2", "--memory-limit", "200MB", processes=2
    )
    before = live_pids(scene, worker)
    [hog] = scene.enqueue("hoards", megabytes=300)
    scene.until_all("completed", [hog])
    [hoarder] = {run.pid for run in scene.runs(hog)}
    assert hoarder in before
    work = scene.enqueue("quick", 100)
    scene.until(
        lambda: (found := live_pids(scene, worker)) and hoarder not in found and len(found) == 2,
        "the process that took too much memory was replaced",
    )
    scene.until_all("completed", work)
    assert scene.lost(*scene.jobs) == []
    assert scene.value("select state from trunkline.workers where pid = %s", hoarder) == "stopped"
    assert worker.says("memory")
    scene.require_balance()

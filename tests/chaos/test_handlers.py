"""Handlers that deadlock, block, hang and crash; the worker and the other jobs go on."""

from datetime import datetime
from uuid import UUID

import pytest

from tests.chaos.scene import Scene
from tests.support.waiting import until
from tests.support.worker_process import lives


def test_a_deadlock_is_handed_back_and_not_counted(scene: Scene) -> None:
    """40P01 is nobody's failure: ready at once, the other one goes through."""
    scene.start("--concurrency", "2")
    scene.enqueue("crosses", first="one", second="two", gate="both")
    scene.enqueue("crosses", first="two", second="one", gate="both")
    until(
        lambda: all((scene.gates / str(job)).exists() for job in scene.jobs),
        "both hold their first row",
    )
    scene.open("both")
    scene.until_all("completed")
    attempts = sorted(scene.job(job).attempt for job in scene.jobs)
    # Whoever is handed back may meet the other one again before that has ended.
    assert attempts[0] == 1
    assert attempts[1] > 1
    assert {scene.job(job).failures for job in scene.jobs} == {0}
    assert scene.value("select array_agg(balance) from chaos.accounts") == [2, 2]
    scene.require_balance()


def test_a_handler_that_blocks_the_event_loop_is_named_and_others_live_on(scene: Scene) -> None:
    """Leases of six seconds: heartbeats of the others go on although nothing else can."""
    worker = scene.start("--concurrency", "4")
    others = [
        *scene.enqueue("gated", 2, gate="later"),
        *scene.enqueue("gated_thread", gate="later"),
    ]
    scene.until_running(others)
    [blocker] = scene.enqueue("blocking", gate="unblock")
    scene.until_running([blocker])
    seen = _heartbeats(scene, others)

    def beaten() -> bool:
        # Somebody else's duties: a lease that is over would be found.
        scene.run_duties()
        now = _heartbeats(scene, others)
        return all((now[job] - seen[job]).total_seconds() > 7 for job in others)

    scene.until(beaten, "heartbeats of the others go on for longer than their lease")
    until(
        lambda: worker.says("blocking", str(blocker)),
        "the log names the task and the job that block",
    )
    assert scene.value("select state from trunkline.workers where pid = %s", worker.pid) == "active"
    scene.open("unblock")
    scene.open("later")
    scene.until_all("completed")
    assert {scene.job(job).attempt for job in scene.jobs} == {1}
    assert scene.lost(*scene.jobs) == []
    scene.require_balance()


def test_a_free_runner_is_not_left_idle(scene: Scene) -> None:
    """Long jobs claimed in one go with the first must not keep a later one from the last runner."""
    jobs = scene.enqueue("gated", 3, gate="later")
    scene.start("--concurrency", "4")
    scene.until_running(jobs)
    scene.until_all("completed", scene.enqueue("quick"))
    scene.open("later")
    scene.until_all("completed")
    scene.require_balance()
    assert {scene.job(job).attempt for job in scene.jobs} == {1}


@pytest.mark.parametrize("task", ["endless", "endless_thread", "endless_process"])
def test_a_handler_past_its_hard_limit_fails(scene: Scene, task: str) -> None:
    worker = scene.start("--concurrency", "4")
    payload = {"gate": "end"} if task == "endless_thread" else {}
    [job] = scene.enqueue(task, **payload)
    scene.until_all("dead", [job])
    runs = scene.runs(job)
    assert len(runs) == scene.job(job).max_attempts
    # The worker's word or the engine's, whoever looks first.
    assert scene.value(
        "select last_error ->> 'type' from trunkline.dead_letters where job_id = %s", job
    ) in {"HardLimitExceeded", "hard_limit"}
    if task == "endless_process":
        assert worker.pid not in {run.pid for run in runs}
        until(lambda: not any(lives(run.pid) for run in runs), "its process was killed")
    scene.until_all("completed", scene.enqueue("quick", 5))
    scene.open("end")
    worker.require_alive()
    scene.require_balance(completed=5)


@pytest.mark.parametrize(("task", "payload"), [("leaves", {"code": 3}), ("crashes", {})])
def test_a_handler_that_kills_its_process_fails_alone(
    scene: Scene, task: str, payload: dict[str, int]
) -> None:
    """os._exit and a segmentation fault: that job fails and is tried again, its neighbours end."""
    worker = scene.start("--concurrency", "4")
    neighbours = scene.enqueue("gated_process", 2, gate="later")
    scene.until_running(neighbours)
    [job] = scene.enqueue(task, **payload)
    scene.until_all("dead", [job])
    assert scene.job(job).failures == 2
    error = scene.value("select last_error from trunkline.dead_letters where job_id = %s", job)
    assert "handler_process_died" in str(error) or "HandlerProcessDied" in str(error)
    scene.open("later")
    scene.until_all("completed", neighbours)
    assert {scene.job(neighbour).attempt for neighbour in neighbours} == {1}
    scene.until_all("completed", scene.enqueue("gated_process", 3, gate="later"))
    worker.require_alive()
    scene.require_balance(completed=5)


def test_a_thread_past_its_limit_does_not_stop_the_worker_from_ending(scene: Scene) -> None:
    worker = scene.start("--concurrency", "2", "--grace", "1s")
    [job] = scene.enqueue("endless_thread", gate="never")
    scene.until_all("dead", [job])
    worker.process.terminate()
    assert worker.until_ended() == 0
    scene.require_balance(completed=0)


def _heartbeats(scene: Scene, jobs: list[UUID]) -> dict[UUID, datetime]:
    rows = scene.superuser.execute(
        "select job_id, coalesce(heartbeat_at, claimed_at) from trunkline.jobs "
        "where job_id = any(%s)",
        (jobs,),
    ).fetchall()
    return dict(rows)

"""Signals to a worker in the middle of its work."""

import signal
from uuid import UUID

import pytest

from tests.chaos.scene import Scene
from tests.support.waiting import until
from tests.support.worker_process import lives

HELD_BACK = 6


def test_sigterm_lets_running_jobs_end_and_hands_the_others_back(scene: Scene) -> None:
    first = scene.start("--concurrency", "2")
    # After so many short jobs the worker claims ahead of need.
    scene.until_all("completed", scene.enqueue("quick", 300))
    running = scene.enqueue("gated", 2, gate="mine")
    scene.until_running(running)
    ahead = scene.enqueue("gated", HELD_BACK, gate="others")
    scene.until(lambda: _claimed(scene, ahead), "jobs are claimed that cannot start")
    first.signal(signal.SIGTERM)
    scene.until_all("ready", ahead)
    second = scene.start("--concurrency", str(HELD_BACK))
    scene.until_running(ahead)
    assert first.process.poll() is None
    assert scene.states(running) == {"running": 2}
    scene.open("mine")
    assert first.until_ended() == 0
    assert {run.pid for run in scene.runs(*running)} == {first.pid}
    assert scene.states(running) == {"completed": 2}
    scene.open("others")
    scene.until_all("completed")
    assert {run.pid for run in scene.runs(*ahead)} == {second.pid}
    assert {scene.job(job).failures for job in scene.jobs} == {0}
    assert scene.value(
        "select array_agg(state) from trunkline.workers where pid = %s", first.pid
    ) == ["stopped"]
    assert scene.lost(*scene.jobs) == []
    scene.require_balance()


def _claimed(scene: Scene, jobs: list[UUID]) -> bool:
    """Whether some of these are, or were, claimed: what cannot start is soon given back."""
    return any(scene.job(job).attempt > 0 for job in jobs)


@pytest.mark.parametrize("task", ["gated", "gated_thread", "gated_process"])
def test_sigterm_past_the_grace_releases_what_still_runs(scene: Scene, task: str) -> None:
    first = scene.start("--grace", "1s")
    [job] = scene.enqueue(task, gate="late")
    scene.until_running([job])
    first.signal(signal.SIGTERM)
    assert first.until_ended() == 0
    released = scene.job(job)
    assert (released.state, released.attempt, released.failures) == ("ready", 1, 0)
    scene.start()
    scene.open("late")
    scene.until_all("completed")
    assert scene.job(job).attempt == 2
    assert scene.lost(job) == []
    scene.require_balance()


@pytest.mark.slow
def test_a_handler_deaf_to_its_cancellation_does_not_keep_the_worker(scene: Scene) -> None:
    """Whether it still works nobody can know, so the job is left to its lease."""
    first = scene.start("--grace", "1s")
    [job] = scene.enqueue("stubborn", gate="late")
    scene.until_running([job])
    first.signal(signal.SIGTERM)
    assert first.until_ended() == 0
    scene.start()
    scene.open("late")
    scene.until_all("completed")
    assert scene.job(job).attempt == 2
    scene.require_balance()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_the_grace(scene: Scene, number: signal.Signals) -> None:
    first = scene.start("--concurrency", "1", "--grace", "10m")
    running = scene.enqueue("gated", gate="late")
    scene.until_running(running)
    ahead = scene.enqueue("gated", 3, gate="late")
    first.signal(number)
    scene.until_all("ready", ahead)
    until(lambda: first.says("shutting down"), "the worker says that it is shutting down")
    first.signal(number)
    assert first.until_ended() in {0, 130, 143}
    assert scene.states(scene.jobs) == {"ready": 4}
    scene.start()
    scene.open("late")
    scene.until_all("completed")
    assert scene.lost(*scene.jobs) == []
    scene.require_balance()


@pytest.mark.parametrize("task", ["gated", "gated_thread", "gated_process"])
def test_work_of_a_killed_worker_is_taken_over(scene: Scene, task: str) -> None:
    """Two missed pulses of a second each, then a reclaim."""
    first = scene.start("--concurrency", "4")
    running = scene.enqueue(task, 2, gate="later")
    scene.until_running(running)
    second = scene.start("--concurrency", "4")
    scene.expect_deaths()
    first.kill()
    scene.until_running(running, attempt=2)
    scene.open("later")
    scene.until_all("completed")
    assert scene.lost(*running) == ["worker_gone"] * 2
    assert scene.value("select state from trunkline.workers where pid = %s", first.pid) == "gone"
    second.require_alive()
    assert {scene.job(job).attempt for job in running} == {2}
    scene.require_balance()


def test_a_killed_worker_leaves_no_handler_process_behind(scene: Scene) -> None:
    first = scene.start()
    [job] = scene.enqueue("gated_process", gate="never")
    scene.until_running([job])
    [run] = scene.runs(job)
    assert run.pid != first.pid
    scene.expect_deaths()
    first.kill()
    until(lambda: not lives(run.pid), "the handler's process ends with its worker")
    scene.start()
    scene.open("never")
    scene.until_all("completed")
    scene.require_balance()


@pytest.mark.parametrize("task", ["gated", "gated_thread", "gated_process", "gated_posting"])
def test_the_late_completion_of_a_stopped_worker_is_refused(scene: Scene, task: str) -> None:
    first = scene.start()
    [job] = scene.enqueue(task, gate="open")
    scene.until_running([job])
    scene.expect_deaths()
    first.signal(signal.SIGSTOP)
    lease = scene.job(job).lease_expires_at
    second = scene.start()
    scene.until_running([job], attempt=2)
    scene.until(
        lambda: scene.value("select clock_timestamp() > %s", lease),
        "the lease is over",
    )
    # The first comes back and ends while the second is still at it.
    scene.open("open", attempt=1)
    first.signal(signal.SIGCONT)
    until(
        lambda: first.says(str(job), "refused") or first.says(str(job), "lost"),
        "the stopped worker is told that the job is not its own any more",
    )
    assert scene.states([job]) == {"running": 1}
    scene.open("open", attempt=2)
    scene.until_all("completed")
    # It was given up for dead, and must find its way back.
    second.signal(signal.SIGTERM)
    assert second.until_ended() == 0
    more = scene.enqueue("quick", 3)
    scene.until_all("completed", more)
    assert {run.pid for run in scene.runs(*more)} == {first.pid}
    assert scene.job(job).attempt == 2
    scene.require_balance()


def test_a_worker_that_gets_its_own_lost_job_back_stops_the_old_attempt(scene: Scene) -> None:
    """Alone and stopped past the lease: both attempts would run side by side in one process."""
    worker = scene.start("--concurrency", "4")
    jobs = scene.enqueue("gated", 3, gate="open")
    scene.until_running(jobs)
    scene.expect_deaths()
    worker.signal(signal.SIGSTOP)

    def taken_back() -> bool:
        scene.run_duties()
        return scene.states(jobs) == {"ready": 3}

    scene.until(taken_back, "the jobs are taken back")
    worker.signal(signal.SIGCONT)
    scene.until_running(jobs, attempt=2)
    # A job claimed before the worker has registered again may be lost once more.
    for attempt in (2, 3, 4, 5):
        scene.open("open", attempt=attempt)
    scene.until_all("completed")
    scene.until(
        lambda: scene.value(
            "select (detail ->> 'running')::integer = 0 from trunkline.workers where pid = %s",
            worker.pid,
        ),
        "nothing runs any more",
    )
    assert {run.finished for run in scene.runs(*jobs) if run.attempt == 1} == {False}
    scene.require_balance()

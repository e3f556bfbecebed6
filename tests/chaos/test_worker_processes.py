"""Signals and deaths between a supervisor, its workers and the processes of handlers."""

import os
import signal
from pathlib import Path

from tests.chaos.scene import Scene
from tests.support.worker_process import WorkerProcess, descendants, lives


def test_one_ctrl_c_reaches_a_supervised_worker_twice_and_leaves_the_grace(scene: Scene) -> None:
    """A terminal tells the whole group, and the supervisor passes on what it was told."""
    worker = scene.start("--processes", "2", "--concurrency", "2", processes=2)
    held = scene.enqueue("gated", 4, gate="later")
    scene.until_running(held)
    # The workers first, as it happens to be more often than not.
    for pid in descendants(worker.pid):
        os.kill(pid, signal.SIGINT)
    worker.signal(signal.SIGINT)
    scene.until(lambda: worker.log.count("shutting down") == 2, "both shut down")
    scene.open("later")
    assert worker.until_ended(30) == 0
    assert scene.states(held) == {"completed": 4}
    assert not worker.says("interrupting")
    scene.require_balance()


def test_a_supervisor_that_is_stopped_while_it_starts_ends_at_once(scene: Scene) -> None:
    worker = scene.launch("--processes", "8", "--grace", "10m")
    scene.until(lambda: worker.says("supervisor ready"), "it starts its processes")
    worker.signal(signal.SIGTERM)
    assert worker.until_ended(30) == 0
    assert not worker.says("did not end")
    assert descendants(worker.pid) == []


def test_a_memory_limit_below_what_an_idle_process_takes_does_not_spin(scene: Scene) -> None:
    worker = scene.launch("--memory-limit", "1MB")
    scene.until(
        lambda: worker.log.count("its successor starts in") >= 3, "it was replaced three times"
    )
    waits = [line for line in worker.log.splitlines() if "its successor starts in" in line]
    assert [line.partition("starts in ")[2].split()[0] for line in waits[:3]] == ["0", "2", "4"]


def test_a_signal_to_the_process_of_a_handler_does_not_cancel_the_job(scene: Scene) -> None:
    """As systemd sends it to everything in the group of a service."""
    worker = scene.start("--concurrency", "1")
    held = scene.enqueue("gated_process", gate="later")
    scene.until_running(held)
    [child] = descendants(worker.pid)
    os.kill(child, signal.SIGTERM)
    scene.until_running(held, attempt=2)
    scene.open("later")
    scene.until_all("completed")
    assert scene.job(held[0]).failures == 0
    scene.require_balance()


def test_the_process_of_a_handler_ends_with_a_worker_that_left_its_words_unread(
    scene: Scene,
) -> None:
    """The socket is reset then, instead of closed."""
    worker = scene.start("--concurrency", "1")
    held = scene.enqueue("gated_process", gate="later")
    scene.until_running(held)
    [child] = descendants(worker.pid)
    worker.signal(signal.SIGSTOP)
    scene.open("later")
    scene.until(lambda: all(run.finished for run in scene.runs(*held)), "the handler has ended")
    scene.until(lambda: _waits(child), "its process has said so")
    worker.kill()
    scene.until(lambda: not lives(child), "its process ends too", deadline=20)
    # It ended by itself: nobody read its words, so for the engine the attempt still runs.
    assert (scene.job(held[0]).state, scene.job(held[0]).attempt) == ("running", 1)


def _waits(pid: int) -> bool:
    """Whether every thread of the process sleeps."""
    states = [
        (task / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        for task in Path(f"/proc/{pid}/task").iterdir()
    ]
    return set(states) == {"S"}


def test_log_lines_of_a_process_look_like_those_of_its_worker(scene: Scene, tmp_path: Path) -> None:
    worker = WorkerProcess(
        "tests.worker.process_app:app",
        environment={"TRUNKLINE_DSN": scene.database.dsn},
        log=tmp_path / "process_app.log",
    )
    try:
        worker.until_ready(scene.superuser)
        [job] = scene.enqueue("speak")
        scene.until_all("completed", [job])
        lines = [one for one in worker.records if one["message"].startswith("a line of")]
        assert [line["job_id"] for line in lines] == [str(job)] * 2
        assert [line["level"] for line in lines] == ["warning"] * 2
    finally:
        worker.destroy()

"""The audit finds what it is there for."""

import pytest

from tests.chaos.scene import Scene
from tests.support.calls import Calls
from tests.support.internals import breaks


def test_a_job_that_has_not_ended_is_found(scene: Scene) -> None:
    scene.enqueue("by_hand")
    with pytest.raises(AssertionError, match="unfinished"):
        scene.require_balance(completed=0)


def test_a_completion_without_its_work_is_found(scene: Scene) -> None:
    scene.enqueue("by_hand")
    calls = Calls(scene.superuser)
    calls.batch("complete", "by hand", calls.claim("by hand").attempts)
    with pytest.raises(AssertionError, match="completed_without_run"):
        scene.require_balance()


def test_a_job_completed_twice_is_found(scene: Scene) -> None:
    scene.enqueue("by_hand")
    calls = Calls(scene.superuser)
    calls.batch("complete", "by hand", calls.claim("by hand").attempts)
    _run_by_hand(scene, attempt=1)
    scene.require_balance()
    breaks.finish_twice(scene.superuser)
    with pytest.raises(AssertionError, match="ended_twice"):
        scene.require_balance()


def test_an_attempt_run_twice_and_a_run_too_many_are_found(scene: Scene) -> None:
    scene.enqueue("by_hand")
    calls = Calls(scene.superuser)
    calls.batch("complete", "by hand", calls.claim("by hand").attempts)
    _run_by_hand(scene, attempt=1)
    _run_by_hand(scene, attempt=2)
    with pytest.raises(AssertionError, match="run_after_completion"):
        scene.require_balance()
    _run_by_hand(scene, attempt=1)
    with pytest.raises(AssertionError, match="attempt_run_twice"):
        scene.require_balance()


def test_a_posting_without_its_completion_is_found(scene: Scene) -> None:
    scene.enqueue("by_hand")
    calls = Calls(scene.superuser)
    calls.batch("complete", "by hand", calls.claim("by hand").attempts)
    _run_by_hand(scene, attempt=1)
    scene.require_balance()
    scene.superuser.execute("insert into chaos.postings values (gen_random_uuid(), 1)")
    with pytest.raises(AssertionError):
        scene.require_balance()


def test_a_worker_that_ends_too_soon_shows_its_log(scene: Scene) -> None:
    worker = scene.launch("--no-such-option")
    assert worker.until_ended() == 2
    with pytest.raises(AssertionError, match="no-such-option"):
        worker.until_ready(scene.superuser)


def _run_by_hand(scene: Scene, *, attempt: int) -> None:
    scene.superuser.execute(
        "insert into chaos.runs (run_id, job_id, attempt, pid, finished_at) "
        "values (gen_random_uuid(), %s, %s, 1, clock_timestamp())",
        (scene.jobs[0], attempt),
    )

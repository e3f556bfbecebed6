"""The jobs a process holds."""

import threading
import time
from datetime import timedelta

import pytest

from tests.worker.scene import a_job
from trunkline.db.lasting import CALL_TIMEOUT
from trunkline.worker.roster import HeldJob, Roster


def test_an_ended_attempt_is_dropped_and_a_newer_one_of_the_job_stays() -> None:
    roster = Roster()
    first = a_job()
    second = first._replace(attempt=2)
    roster.add([first])
    (newer,) = roster.add([second])
    roster.remove([first])
    assert roster.get(first.job_id) is newer
    roster.remove([second])
    assert (roster.get(first.job_id), len(roster)) == (None, 0)


def test_removing_what_is_not_there_is_fine() -> None:
    roster = Roster()
    roster.remove([a_job()])
    assert list(roster) == []


@pytest.mark.parametrize(("lease", "every"), [(300, 15), (45, 15), (30, 10), (3, 1)])
def test_a_job_is_heartbeated_every_15_seconds_or_thrice_in_its_lease(
    lease: float, every: float
) -> None:
    """RC-30."""
    job = a_job()
    held = HeldJob(job._replace(lease_expires_at=job.claimed_at + timedelta(seconds=lease)), 0.0)
    assert held.beat_every == pytest.approx(every)


def test_the_limit_is_measured_from_the_claim_whatever_the_clocks_say() -> None:
    """By the server's own difference: its clock may be hours away from ours."""
    job = a_job()
    far = job._replace(
        claimed_at=job.claimed_at + timedelta(hours=9),
        hard_deadline=job.claimed_at + timedelta(hours=9, seconds=90),
    )
    now = time.monotonic()
    assert HeldJob(far, now).deadline == pytest.approx(now + 90)


def test_heartbeats_do_not_move_the_limit() -> None:
    """RC-31: a job that beats is kept, but no longer than its hard limit."""
    job = a_job()
    held = HeldJob(job._replace(hard_deadline=job.claimed_at + timedelta(seconds=90)), 1000.0)
    assert held.beat_every == 15
    held.last_beat = 1050.0
    assert held.deadline == 1090.0


def test_other_threads_may_read_the_roster_while_it_changes() -> None:
    roster = Roster()
    ended = threading.Event()
    failures: list[BaseException] = []

    def look() -> None:
        try:
            while not ended.is_set():
                assert all(held.job.task == "work" for held in roster)
        except BaseException as error:  # noqa: BLE001 - told to the test
            failures.append(error)

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(300):
        jobs = [a_job() for _ in range(5)]
        roster.add(jobs)
        roster.remove(jobs)
    ended.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(roster) == 0


def test_a_lost_answer_is_looked_for_at_once_and_once_more() -> None:
    """A server that takes the call up late claims jobs after the first look."""
    roster = Roster()
    before = time.monotonic()
    roster.doubt()
    first, second = roster.checks
    assert before <= first <= time.monotonic()
    # Longer than the longest call of a worker.
    assert second - first > CALL_TIMEOUT

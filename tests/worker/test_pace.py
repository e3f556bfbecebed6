"""How long an idle worker waits between looks (TA-34)."""

import random

import pytest

from trunkline.worker.pace import Pace


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """No jitter."""
    monkeypatch.setattr(random, "random", lambda: 0.0)


LATE = [0.005, 0.02, 0.1, 1.0]


def past_late_looks() -> Pace:
    pace = Pace()
    assert [pace.next_wait(notified=True) for _ in LATE] == LATE
    return pace


def test_idle_waits_are_5_10_20_and_then_30_seconds(steady: None) -> None:
    """TA-34."""
    pace = past_late_looks()
    assert [pace.next_wait(notified=True) for _ in range(6)] == [5, 10, 20, 30, 30, 30]


def test_work_starts_the_waits_over(steady: None) -> None:
    """TA-34: the first idle wait after work is 5 s."""
    pace = past_late_looks()
    for _ in range(4):
        pace.next_wait(notified=True)
    pace.worked()
    assert [pace.next_wait(notified=True) for _ in range(2)] == [5, 10]


def test_jitter_shortens_a_wait_by_a_fifth_at_most_and_never_lengthens_it() -> None:
    """TA-34: 30 s is the maximum, with jitter."""
    pace = past_late_looks()
    for _ in range(3):
        pace.next_wait(notified=True)
    waits = [pace.next_wait(notified=True) for _ in range(1000)]
    assert 24 <= min(waits) < 25
    assert 29 < max(waits) <= 30


def test_a_worker_without_notifications_claims_every_second(steady: None) -> None:
    pace = past_late_looks()
    assert [pace.next_wait(notified=False) for _ in range(50)] == [1.0] * 50


def test_blind_waits_do_not_use_up_the_idle_steps(steady: None) -> None:
    pace = past_late_looks()
    for _ in range(5):
        pace.next_wait(notified=False)
    assert pace.next_wait(notified=True) == 5


def test_a_worker_that_just_asked_for_notifications_soon_scans_for_late_commits(
    steady: None,
) -> None:
    pace = past_late_looks()
    pace.next_wait(notified=True)
    pace.fell_asleep()
    assert [pace.next_wait(notified=True) for _ in range(5)] == [*LATE, 10]


def test_late_scans_happen_without_notifications_too(steady: None) -> None:
    pace = past_late_looks()
    pace.fell_asleep()
    assert [pace.next_wait(notified=False) for _ in range(5)] == [*LATE, 1.0]

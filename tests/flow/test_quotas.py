"""Quotas at the claim: rolling windows and budgets in any unit, reserved by estimates."""

from datetime import timedelta

import pytest
from psycopg.types.json import Jsonb

from tests.flow.conftest import Desk
from tests.flow.test_grants import acquire, settle, settle_job
from tests.flow.test_holds import register_worker

GB = 1024**3


def quota(desk: Desk, name: str = "data", **parts: object) -> Desk:
    desk.operator.value("select trunkline.set_limit(%s, %s)", name, Jsonb(parts))
    return desk


def test_the_longest_prefix_that_fits_is_served(desk: Desk) -> None:
    """RF-53, RF-55: usage, what runs and what is about to run stay below the buffered quota."""
    quota(desk, quota=20 * GB, quota_unit="bytes").task("data", cost={"units": 3 * GB})
    desk.enqueue(10)
    running = desk.claim()
    # 0.95 of 20 GB is 20,401,094,656 bytes: six of three, not seven.
    assert len(running) == 6
    assert desk.claim() == []
    assert desk.gate("data")["spent"] == 18 * GB
    settle_job(desk, running[0], units=GB)
    assert len(desk.claim()) == 1
    assert desk.claim() == []


def test_usage_counts_for_every_outcome(desk: Desk) -> None:
    """RF-56, decision 19: a lost attempt is charged its reservation."""
    quota(desk, quota=1000, quota_unit="bytes", quota_buffer=1).task("data", cost={"units": 100})
    desk.enqueue(3)
    failed, settled, _lost = desk.claim()
    desk.end([failed], "fail")
    settle_job(desk, settled, units=7)
    desk.end([settled], "fail")
    desk.database.move_time("301 seconds")
    desk.worker.reclaim()
    assert desk.gate("data")["spent"] == 207


def test_the_window_rolls_by_the_hour(desk: Desk) -> None:
    quota(desk, quota=100, quota_window="24 hours", quota_buffer=1, quota_unit="pages")
    desk.task("data", cost={"units": 60})
    first, second = desk.enqueue(2)
    register_worker(desk)
    assert desk.claimed() == [first]
    (until,) = desk.operator.connection.execute(
        "select until - trunkline.clock() from trunkline.explain(%s)", (second,)
    ).fetchone()  # type: ignore[misc]
    assert timedelta(hours=24) < until <= timedelta(hours=25)
    desk.database.move_time("23 hours")
    assert desk.claim() == []
    desk.database.move_time("2 hours")
    assert second in desk.claimed()


@pytest.mark.parametrize(("period", "later"), [("day", "1 day"), ("month", "31 days")])
def test_a_budget_is_a_tenants_own_and_begins_anew(desk: Desk, period: str, later: str) -> None:
    """A budget stops that tenant alone; raising it lets him go on."""
    quota(desk, "budget/{tenant}", quota=100, quota_unit="tokens", quota_period=period)
    desk.task("budget/{tenant}", cost={"tokens": 60})
    desk.set_limit("budget/{tenant}", {"quota_refuses": False})
    acme = desk.enqueue(4, tenant="acme")
    zoo = desk.enqueue(1, tenant="zoo")
    assert set(desk.claimed()) == {acme[0], zoo[0]}
    assert desk.claim() == []
    quota(desk, "budget/acme", quota=180, quota_unit="tokens", quota_period=period)
    assert desk.claimed() == acme[1:3]
    desk.database.move_time(later)
    desk.worker.reclaim()
    assert acme[3] in desk.claimed()


def test_low_priorities_stop_first(desk: Desk) -> None:
    """RF-58: above 75 % what is bulk waits, and what is watched goes on."""
    quota(desk, quota=100, quota_buffer=0.95, quota_unit="calls").task("data", cost={"units": 10})
    bulk = desk.enqueue(10, priority=-1)
    assert desk.claimed() == bulk[:7]
    watched = desk.enqueue(3, priority=0)
    assert desk.claimed() == watched[:2]


def test_corrections_are_counted_once_also_beyond_the_hour(desk: Desk) -> None:
    quota(desk, quota=1000, quota_buffer=1, quota_unit="bytes")
    for _ in range(3):
        grant = acquire(desk, "data", units=100)
        settle(desk, grant.grant_id, units=30)
        desk.operator.value("select trunkline.sweep_gates()")
        desk.database.move_time("1 hour")
    assert desk.gate("data")["spent"] == 90
    assert acquire(desk, "data", units=910).granted
    assert acquire(desk, "data", units=1).reason == "quota"


def test_the_hours_of_a_quota_are_put_together(desk: Desk) -> None:
    quota(desk, quota=1000, quota_buffer=1, quota_unit="bytes").task("data", cost={"units": 1})
    for _ in range(5):
        desk.enqueue(1)
        assert len(desk.claim()) == 1
    desk.database.move_time("1 hour")
    desk.operator.value("select trunkline.sweep_gates()")
    rows = desk.behind.execute("select amount from trunkline_internal.quota_hours").fetchall()
    assert rows == [(5,)]
    assert desk.gate("data")["spent"] == 5

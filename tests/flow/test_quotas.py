"""Quotas at the claim: rolling windows and budgets in any unit, reserved by estimates."""

from datetime import timedelta

import pytest
from psycopg.types.json import Jsonb

from tests.flow.conftest import Desk
from tests.flow.test_grants import acquire, settle, settle_job
from tests.flow.test_pauses import observe, register_worker
from tests.support.internals import usage

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
    assert desk.bucket("data")["spent"] == 18 * GB
    settle_job(desk, running[0], units=GB)
    assert len(desk.claim()) == 1
    assert desk.claim() == []


def test_usage_counts_for_every_outcome(desk: Desk) -> None:
    """RF-56, overview 6.19: a lost attempt is charged its reservation."""
    quota(desk, quota=1000, quota_unit="bytes", quota_buffer=1).task("data", cost={"units": 100})
    desk.enqueue(3)
    failed, settled, _lost = desk.claim()
    desk.end([failed], "fail")
    settle_job(desk, settled, units=7)
    desk.end([settled], "fail")
    desk.database.move_time("301 seconds")
    desk.worker.reclaim()
    assert desk.bucket("data")["spent"] == 207


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
def test_each_tenant_has_its_own_budget_and_it_starts_again(
    desk: Desk, period: str, later: str
) -> None:
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
        desk.operator.value("select trunkline.sweep_buckets()")
        desk.database.move_time("1 hour")
    assert desk.bucket("data")["spent"] == 90
    assert acquire(desk, "data", units=910).granted
    assert acquire(desk, "data", units=1).reason == "quota"


def test_the_hours_of_a_quota_are_put_together(desk: Desk) -> None:
    """RF-52: the sum of thirty days is one of hours, however many claims there were."""
    quota(desk, quota=1000, quota_buffer=1, quota_unit="bytes").task("data", cost={"units": 1})
    attempts = []
    for _ in range(5):
        desk.enqueue(1)
        attempts += desk.claim()
    # What is settled late is one row more for that hour.
    desk.database.move_time("1 hour")
    settle_job(desk, attempts[-1], units=3)
    assert acquire(desk, "data", units=1).granted
    desk.operator.value("select trunkline.sweep_buckets()")
    hours = [hour for hour, _ in usage.quota_hours(desk.behind)]
    assert len(hours) == len(set(hours)) == 2
    # Whether the correction is part of it by now depends on who else has a transaction open.
    assert desk.bucket("data")["spent"] == 8
    assert acquire(desk, "data", units=992).granted
    assert acquire(desk, "data", units=1).reason == "quota"


def test_hours_are_put_together_also_when_nobody_comes_back(desk: Desk) -> None:
    """What keeps the sum of an idle quota stays until its rows are one for each hour."""
    quota(desk, quota=1000, quota_buffer=1, quota_unit="bytes")
    for _ in range(3):
        assert acquire(desk, "data", units=7).granted
    for _ in range(4):
        desk.operator.value("select trunkline.sweep_buckets()")
        desk.database.move_time("1 hour")
    assert [amount for _, amount in usage.quota_hours(desk.behind)] == [21]
    assert desk.bucket("data")["spent"] == 21


def test_putting_hours_together_reads_only_those_in_use(desk: Desk) -> None:
    """It runs every few seconds: what a hundred thousand idle hours cost has to be nothing."""
    quota(desk, quota=1000, quota_buffer=1, quota_unit="bytes")
    for _ in range(3):
        assert acquire(desk, "data", units=1).granted
    usage.fill_quota_hours(desk.behind, buckets=200, rows_each=600)
    desk.database.move_time("1 hour")
    before = _rows_read(desk)
    desk.operator.value("select trunkline.sweep_buckets()")
    assert _rows_read(desk) - before < 1000
    amounts = [amount for _, amount in usage.quota_hours(desk.behind)]
    assert (sum(amounts), len(amounts)) == (120_003, 120_001)


def _rows_read(desk: Desk) -> int:
    """Rows of hours that were read by anybody."""
    desk.operator.connection.execute("select pg_stat_force_next_flush()")
    desk.operator.connection.execute("select 1")
    return usage.quota_rows_read(desk.behind)


def test_what_a_provider_has_left_of_the_minute_is_not_spent_of_the_quota(desk: Desk) -> None:
    """A minute forgets it; a quota would count it for thirty days."""
    quota(desk, "api", quota=1000, quota_unit="requests", requests_per_minute=100)
    assert acquire(desk, "api").granted
    observe(desk, "api", remaining_requests=3, reset_requests=20)
    assert desk.bucket("api")["spent"] == 1
    assert len([True for _ in range(10) if acquire(desk, "api").granted]) == 10


@pytest.mark.parametrize("parts", [{"quota_period": "month"}, {"quota_window": "30 days"}])
def test_when_there_is_more_does_not_depend_on_the_zone_of_a_session(
    desk: Desk, parts: dict[str, str]
) -> None:
    """Within the next year every zone that changes its clocks does: a month over that is hit."""
    quota(desk, quota=100, quota_buffer=1, quota_unit="pages", quota_refuses=False, **parts)
    desk.task("data", cost={"units": 60})
    register_worker(desk)
    for _ in range(12):
        desk.enqueue(2)
        assert len(desk.claim()) == 1
        told = set()
        for zone in ("UTC", "Europe/Berlin", "Australia/Sydney"):
            desk.worker.connection.execute(f"set timezone = '{zone}'".encode())
            answer = acquire(desk, "data", units=60)
            assert answer.reason == "quota"
            told.add(answer.free_at)
        assert len(told) == 1
        desk.database.move_time("31 days")

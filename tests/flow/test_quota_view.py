"""The view of quotas: what is spent, reserved and left, and when it will be spent, by hand."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.flow.conftest import Desk
from tests.flow.test_grants import acquire, settle, settle_job
from tests.flow.test_quotas import GB, quota
from tests.support.internals import flow

# The clock goes on while a test runs.
NEARLY = timedelta(minutes=10)


def shown(desk: Desk, name: str = "data") -> dict[str, Any]:
    found = listed(desk)
    assert name in found
    return found[name]


def listed(desk: Desk) -> dict[str, dict[str, Any]]:
    cursor = desk.operator.connection.execute("select * from trunkline.quotas")
    assert cursor.description is not None
    names = [column.name for column in cursor.description]
    rows = [dict(zip(names, row, strict=True)) for row in cursor]
    return {row["name"]: row for row in rows}


def begin_at_noon(desk: Desk) -> datetime:
    """Tomorrow at 12:00 UTC, so that hours can be told apart."""
    (wait,) = desk.behind.execute(
        "select (date_trunc('day', trunkline.clock(), 'UTC') + interval '36 hours'"
        " - trunkline.clock())::text"
    ).fetchone()  # type: ignore[misc]
    desk.database.move_time(wait)
    noon: datetime = desk.operator.value("select date_trunc('hour', trunkline.clock())")
    assert noon.hour == 12
    return noon


def take(desk: Desk, amount: int, name: str = "data") -> None:
    """Of whatever it counts."""
    grant = acquire(desk, name, units=amount, tokens=amount)
    assert grant.granted
    settle(desk, grant.grant_id)


def test_a_quota_nobody_has_used_is_there(desk: Desk) -> None:
    """RF-53: 20 GB are 21,474,836,480 bytes, 20,401,094,656 of which are given out."""
    quota(desk, quota=20 * GB, quota_unit="bytes")
    row = shown(desk)
    assert (row["limit"], row["unit"], row["window"]) == ("data", "bytes", timedelta(days=30))
    assert (row["quota"], row["allowed"]) == (21_474_836_480, 20_401_094_656)
    assert row["low_allowed"] == 16_106_127_360
    assert (row["spent"], row["reserved"], row["remaining"]) == (0, 0, 20_401_094_656)
    assert (row["share"], row["rate_per_hour"], row["spent_at"]) == (0, 0, None)
    assert (row["paused_low"], row["exhausted"], row["refused_until"]) == (False, False, None)


def test_a_running_job_reserves_its_cost_until_it_settles(desk: Desk) -> None:
    """RF-55, RF-56: estimates of what runs are spent, and told apart while they can change."""
    quota(desk, quota=1000, quota_buffer=1).task("data", cost={"units": 100})
    desk.enqueue(3)
    settled, ended, _running = desk.claim()
    seen = shown(desk)
    assert (seen["spent"], seen["reserved"], seen["remaining"]) == (300, 300, 700)
    settle_job(desk, settled, units=40)
    seen = shown(desk)
    assert (seen["spent"], seen["reserved"], seen["remaining"]) == (240, 200, 760)
    desk.end([ended], "fail")
    grant = acquire(desk, "data", units=50)
    seen = shown(desk)
    assert (seen["spent"], seen["reserved"]) == (290, 150)
    settle(desk, grant.grant_id, units=60)
    seen = shown(desk)
    assert (seen["spent"], seen["reserved"], float(seen["share"])) == (300, 100, 0.3)


def test_a_grant_that_took_over_from_its_claim_is_reserved_once(desk: Desk) -> None:
    quota(desk, quota=1000, quota_buffer=1).task("data", cost={"units": 100})
    desk.enqueue(1)
    [attempt] = desk.claim()
    assert acquire(desk, "data", attempt=attempt, units=100).granted
    assert (shown(desk)["spent"], shown(desk)["reserved"]) == (100, 100)


def test_a_grant_that_nobody_settled_is_reserved_until_it_expires(desk: Desk) -> None:
    quota(desk, quota=1000, quota_buffer=1)
    assert acquire(desk, "data", units=100).granted
    assert shown(desk)["reserved"] == 100
    desk.database.move_time("5 minutes")
    assert (shown(desk)["spent"], shown(desk)["reserved"]) == (100, 0)


def test_the_pace_is_that_of_the_time_since_the_first_use(desk: Desk) -> None:
    """RF-52: 100 in ten hours are 10 an hour; the other 900 last 90 hours."""
    noon = begin_at_noon(desk)
    quota(desk, quota=1000, quota_buffer=1)
    take(desk, 100)
    assert float(shown(desk)["rate_per_hour"]) == 100
    desk.database.move_time("10 hours")
    row = shown(desk)
    assert float(row["rate_per_hour"]) == pytest.approx(10, rel=0.01)
    assert abs(row["spent_at"] - noon - timedelta(hours=100)) < timedelta(hours=1)


def test_what_is_older_than_a_day_is_no_pace(desk: Desk) -> None:
    quota(desk, quota=1000, quota_buffer=1)
    take(desk, 100)
    desk.database.move_time("26 hours")
    row = shown(desk)
    assert (row["spent"], row["rate_per_hour"], row["spent_at"]) == (100, 0, None)


def test_the_forecast_counts_what_falls_out_of_the_window(desk: Desk) -> None:
    """24 taken at noon and 24 a day later, of 51 in 48 hours; looked at 47 hours after the first.

    The last day has 24 in 23 hours. Without the window the other 3 would be gone in 2.9 hours. But
    in 2 hours 24 come back: 27 last 25.9 hours, and the next 24 come back after 26.
    """
    noon = begin_at_noon(desk)
    quota(desk, quota=51, quota_buffer=1, quota_window="48 hours")
    take(desk, 24)
    desk.database.move_time("24 hours")
    take(desk, 24)
    desk.database.move_time("23 hours")
    expected = noon + timedelta(hours=47) + timedelta(hours=27 * 23 / 24)
    assert abs(shown(desk)["spent_at"] - expected) < NEARLY
    # With one less it is gone before the first come back.
    quota(desk, quota=50, quota_buffer=1, quota_window="48 hours")
    expected = noon + timedelta(hours=47) + timedelta(hours=2 * 23 / 24)
    assert abs(shown(desk)["spent_at"] - expected) < NEARLY
    # With one more the next come back in time, and then all is well for a whole window.
    quota(desk, quota=52, quota_buffer=1, quota_window="48 hours")
    assert shown(desk)["spent_at"] is None


def test_a_budget_is_forecast_up_to_its_end(desk: Desk) -> None:
    """40 in two hours: the other 60 last three more; a third of that pace outlasts the day."""
    noon = begin_at_noon(desk)
    quota(desk, "data", quota=100, quota_unit="tokens", quota_period="day")
    quota(desk, "slow", quota=100, quota_unit="tokens", quota_period="day")
    take(desk, 40)
    take(desk, 13, "slow")
    desk.database.move_time("2 hours")
    row = shown(desk)
    assert (row["window"], row["period"], row["allowed"]) == (None, "day", 100)
    assert row["since"] == noon - timedelta(hours=12)
    assert row["resets_at"] == noon + timedelta(hours=12)
    assert abs(row["spent_at"] - noon - timedelta(hours=5)) < NEARLY
    # 87 at 6.5 an hour last 13 hours, and the day has 10.
    assert shown(desk, "slow")["spent_at"] is None
    desk.database.move_time("10 hours")
    row = shown(desk)
    assert (row["spent"], row["since"]) == (0, noon + timedelta(hours=12))


def test_low_priorities_stop_before_the_others(desk: Desk) -> None:
    """RF-58, RF-54: at 75 % bulk stops, at 95 % everybody, until enough has fallen out."""
    noon = begin_at_noon(desk)
    quota(desk, quota=100, quota_window="24 hours", quota_buffer=0.95)
    take(desk, 60)
    desk.database.move_time("1 hour")
    take(desk, 14)
    assert shown(desk)["paused_low"] is False
    take(desk, 1)
    row = shown(desk)
    assert (row["paused_low"], row["exhausted"]) == (True, False)
    take(desk, 20)
    row = shown(desk)
    assert (row["paused_low"], row["exhausted"], row["remaining"]) == (True, True, 0)
    # The hour of noon counts until a day after its end.
    assert row["refused_until"] == noon + timedelta(hours=25)
    assert row["spent_at"] < row["refused_until"]
    # Of less, the second hour has to fall out too.
    quota(desk, quota=30, quota_window="24 hours", quota_buffer=0.95)
    assert shown(desk)["refused_until"] == noon + timedelta(hours=26)


def test_a_quota_of_nothing_is_spent_for_good(desk: Desk) -> None:
    quota(desk, quota=0)
    row = shown(desk)
    assert (row["exhausted"], row["refused_until"], row["share"]) == (True, None, None)


def test_every_key_has_its_own_and_a_filled_in_name_goes_first(desk: Desk) -> None:
    quota(desk, "budget/{tenant}", quota=100, quota_unit="tokens", quota_period="month")
    assert set(listed(desk)) == {"budget/{tenant}"}
    desk.task("budget/{tenant}", cost={"tokens": 60})
    desk.enqueue(1, tenant="acme")
    desk.enqueue(1, tenant="zoo")
    assert len(desk.claim()) == 2
    quota(desk, "budget/acme", quota=600, quota_unit="tokens", quota_period="month")
    found = listed(desk)
    assert {name: (row["limit"], row["spent"], row["quota"]) for name, row in found.items()} == {
        "budget/acme": ("budget/acme", 60, 600),
        "budget/zoo": ("budget/{tenant}", 60, 100),
    }


def test_a_session_of_a_tenant_sees_no_quota(desk: Desk) -> None:
    quota(desk, quota=100)
    reader = desk.database.connect("trunkline_reader")
    assert reader.execute("select count(*) from trunkline.quotas").fetchone() == (1,)
    reader.execute("set trunkline.tenant = 'acme'")
    assert reader.execute("select count(*) from trunkline.quotas").fetchone() == (0,)


def test_a_month_ends_in_utc_whatever_the_session_thinks(desk: Desk) -> None:
    """Adding a month in a zone whose clocks change within it would be an hour off."""
    quota(desk, "data", quota=100, quota_unit="tokens", quota_period="month")
    for zone in ("America/New_York", "Europe/Berlin"):
        desk.operator.connection.execute(f"set timezone = '{zone}'".encode())
        until = desk.operator.value(
            "select resets_at at time zone 'UTC' = date_trunc('month', trunkline.clock() at time"
            " zone 'UTC') + interval '1 month' from trunkline.quotas"
        )
        assert until is True


@pytest.mark.parametrize("unit", ["requests", "tokens", "pages"])
def test_the_view_counts_what_claims_count(desk: Desk, unit: str) -> None:
    """The view cannot call the function that claims use, so it repeats the sum."""
    quota(desk, quota=1000, quota_unit=unit, quota_buffer=1)
    take(desk, 7)
    grant = acquire(desk, "data", units=20, tokens=20)
    settle(desk, grant.grant_id, units=11, tokens=12, requests=3)
    ((_, *_, spent),) = flow.charged(desk.behind)
    assert shown(desk)["spent"] == spent
    assert spent == {"requests": 4, "tokens": 19, "pages": 18}[unit]

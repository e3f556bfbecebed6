"""What operators see: health, validation, history and the numbers to watch."""

import json
from decimal import Decimal
from typing import Any

import pytest

from profiles.tests.executor.conftest import Desk


@pytest.mark.parametrize(
    ("age", "health"),
    [
        ("29 minutes 58 seconds", "healthy"),
        ("30 minutes 1 second", "stale"),
        ("59 minutes 58 seconds", "stale"),
        ("60 minutes 1 second", "critical"),
    ],
)
def test_rc_34_health_by_the_age_of_the_last_sign_of_life(
    desk: Desk, age: str, health: str
) -> None:
    """RC-34: healthy below the TTL, stale from it on, critical from twice of it on."""
    job = desk.start()
    desk.pass_time(age)
    (row,) = desk.rows("select * from executor.executor_jobs_stale_monitor")
    assert (row.id, row.type, row.health) == (job, "run_tsa", health)
    assert (row.ttl.total_seconds(), row.heartbeat_age) == (1800, None)
    assert row.ratio == pytest.approx(Decimal(row.age / row.ttl), abs=Decimal("0.001"))


def test_rc_34_a_heartbeat_makes_it_healthy(desk: Desk) -> None:
    """RC-34: the age is that of the lock, the ratio that of the last sign of life."""
    job = desk.start()
    desk.pass_time("40 minutes")
    assert desk.beat(job)
    desk.pass_time("3 minutes")
    (row,) = desk.rows("select * from executor.executor_jobs_stale_monitor")
    assert row.health == "healthy"
    assert (row.age.total_seconds() // 60, row.heartbeat_age.total_seconds() // 60) == (43, 3)
    assert row.ratio == pytest.approx(Decimal("0.1"), abs=Decimal("0.005"))


def test_rc_35_validation_shows_only_what_is_critical(desk: Desk) -> None:
    """RC-35, RC-38: empty while all is well; any row of it is an alert."""
    metric = "select value, alert from executor.executor_metrics"
    metric += " where metric = 'running_over_twice_ttl'"
    job = desk.start()
    desk.pass_time("59 minutes")
    assert desk.rows("select id from executor.executor_jobs_stale_validation") == []
    assert desk.rows(metric) == [(0, False)]
    desk.pass_time("2 minutes")
    assert desk.rows("select id from executor.executor_jobs_stale_validation") == [(job,)]
    assert desk.rows(metric) == [(1, True)]


def test_rc_38_the_last_reclaim_is_watched(desk: Desk) -> None:
    """RC-38: never, or more than two minutes ago, is an alert."""
    metric = "select alert from executor.executor_metrics where metric = 'seconds_since_reclaim'"
    assert desk.rows(metric) == [(True,)]
    desk.wake("process_orchestrator_jobs")
    assert desk.rows(metric) == [(False,)]
    desk.pass_time("2 minutes 1 second")
    assert desk.rows(metric) == [(True,)]


def test_rc_38_reclaims_and_deaths_of_the_last_hour_by_type(desk: Desk) -> None:
    """RC-38: from the events; what is older does not count."""

    def count(metric: str) -> dict[str, int]:
        rows = desk.rows(
            "select type, value from executor.executor_metrics where metric = %s", metric
        )
        return {row.type: int(row.value) for row in rows if row.value}

    desk.start("build_artifact")
    desk.pass_time("16 minutes")
    desk.reclaim()
    claim = desk.start("run_tsa", "w2")
    attempt = desk.rows("select attempt from executor.executor_jobs_stale_monitor")[0].attempt
    desk.worker.connection.execute(
        "select trunkline.fail('w2', array[%s]::uuid[], array[%s], null, array[false])",
        (claim, attempt),
    )
    assert count("reclaims_last_hour") == {"build_artifact": 1}
    assert count("dead_last_hour") == {"run_tsa": 1}
    desk.pass_time("61 minutes")
    assert count("reclaims_last_hour") == count("dead_last_hour") == {}


def test_rc_55_the_three_views_are_there(desk: Desk) -> None:
    """RC-55: each answers an operator."""
    for view in ("stale_monitor", "stale_validation", "reclaim_history"):
        assert desk.rows(f"select * from executor.executor_jobs_{view}") == []


CRAFTED = [
    {"claimed_at": "-infinity", "lease_expires_at": "infinity"},
    {"claimed_at": "infinity", "lease_expires_at": "infinity", "heartbeat_at": "infinity"},
    {"claimed_at": "4713-01-01 00:00:00 BC", "lease_expires_at": "294276-12-31 23:59:59"},
    {"claimed_at": "2026-01-01T00:00:00Z", "lease_expires_at": "999999-01-01"},
    {"claimed_at": "2026-13-45", "lease_expires_at": "now() - 1", "heartbeat_at": "\u0001"},
    {"claimed_at": "2026-01-01 00:00 Nowhere/Never", "lease_expires_at": {"a": [1]}},
    {"claimed_at": 1e300, "lease_expires_at": None, "worker": ["w"] * 9},
]


@pytest.mark.parametrize("kind", ["lease_expired", "hard_limit"])
@pytest.mark.parametrize("error", CRAFTED, ids=lambda error: str(error)[:50])
def test_no_error_of_a_worker_breaks_a_view(desk: Desk, error: dict[str, Any], kind: str) -> None:
    """Whatever fail is told, also in the words of a reclaim, everybody can read the jobs."""
    job = desk.start()
    crafted = {"type": kind, "lost_at": error["claimed_at"], **error}
    desk.worker.connection.execute(
        "select trunkline.fail('w1', array[%s::uuid], '{1}', array[%s::jsonb], %s)",
        (job, json.dumps(crafted), [kind == "lease_expired"]),
    )
    found = desk.row(job)
    assert found.status == ("queued" if kind == "lease_expired" else "dead")
    assert found.last_error.startswith("RECLAIMED_TTL: ")
    views = desk.rows(
        "select table_name from information_schema.views where table_schema = 'executor'"
    )
    assert len(views) >= 5
    for (view,) in views:
        desk.rows(f"select * from executor.{view}")

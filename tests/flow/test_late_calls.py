"""Which attempts count as late: charged by their claim, long at it, and without a grant."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from tests.flow.conftest import Desk
from tests.flow.test_grants import acquire, settle_job


def late(desk: Desk, limit: str = "api") -> tuple[int, list[str]]:
    found = desk.operator.connection.execute(
        "select late, late_tasks from trunkline.limits where name = %s", (limit,)
    ).fetchone()
    assert found is not None
    return found[0], found[1]


def spent(desk: Desk) -> list[Any]:
    return desk.operator.connection.execute(
        'select "limit", task, calls, requests, tokens from trunkline.usage order by 1, 2'
    ).fetchall()


def notices_of(connection: psycopg.Connection[Any]) -> list[dict[str, Any]]:
    """What the engine sends beside its answers, from now on."""
    found: list[dict[str, Any]] = []

    def take(notice: psycopg.errors.Diagnostic) -> None:
        assert notice.sqlstate == "01TL0"
        found.append(json.loads(notice.message_detail or ""))

    connection.add_notice_handler(take)
    return found


@pytest.mark.parametrize(
    ("how", "more"),
    [
        ("complete", {}),
        ("fail", {}),
        ("snooze", {"delays": ["1 minute"]}),
        ("release", {"reason": "x"}),
    ],
)
def test_every_end_of_a_late_attempt_is_counted(desk: Desk, how: str, more: dict[str, Any]) -> None:
    desk.limit("api", requests_per_minute=10).task("api")
    notices = notices_of(desk.worker.connection)
    desk.enqueue(1)
    (attempt,) = desk.claim()
    desk.database.move_time("50 seconds")
    desk.end([attempt], how, **more)
    assert late(desk) == (1, ["work"])
    assert notices == [{"task": "work", "limit": "api", "attempts": 1, "seconds": 50}]


def test_a_short_attempt_is_not_late(desk: Desk) -> None:
    desk.limit("api", requests_per_minute=10).task("api")
    notices = notices_of(desk.worker.connection)
    desk.enqueue(1)
    (attempt,) = desk.claim()
    desk.database.move_time("10 seconds")
    desk.end([attempt])
    assert (late(desk), notices) == ((0, []), [])


def test_a_batch_sends_one_notice_for_each_task_and_limit(desk: Desk) -> None:
    desk.limit("api", requests_per_minute=10).limit("model/{model}", tokens_per_minute=1000)
    desk.task("api", "model/{model}", cost={"tokens": 10})
    notices = notices_of(desk.worker.connection)
    for model in ("a", "b"):
        desk.enqueue(2, payload={"model": model})
    attempts = desk.claim()
    assert len(attempts) == 4
    desk.database.move_time("20 seconds")
    desk.end(attempts)
    assert [(one["limit"], one["attempts"]) for one in notices] == [
        ("api", 4),
        ("model/{model}", 4),
    ]
    assert late(desk, "model/{model}") == (4, ["work"])
    # What nobody settled is booked as estimated, once.
    assert spent(desk) == [("api", "work", 4, 4, 40), ("model/{model}", "work", 4, 4, 40)]


def test_the_shortest_window_of_the_limit_decides(desk: Desk) -> None:
    """Slots and quotas have none."""
    desk.limit("hourly", requests_per_hour=100).limit("slots", concurrency=5)
    desk.limit("budget", quota=1000, quota_unit="requests")
    desk.task("hourly", "slots", "budget")
    desk.enqueue(2)
    first, second = desk.claim()
    desk.database.move_time("10 minutes")
    desk.end([first])
    assert late(desk, "hourly")[0] == 0
    desk.database.move_time("10 minutes")
    desk.end([second])
    assert late(desk, "hourly")[0] == 1
    assert late(desk, "slots")[0] == late(desk, "budget")[0] == 0


def test_asking_or_settling_is_not_late(desk: Desk) -> None:
    """Also where there was no room: then no call was made."""
    desk.limit("api", requests_per_minute=2).limit("other", requests_per_minute=10)
    desk.task("api", "other")
    desk.enqueue(2)
    asked, settled = desk.claim()
    desk.database.move_time("30 seconds")
    assert acquire(desk, attempt=asked).granted
    assert settle_job(desk, settled, requests=1) == "settled"
    desk.end([asked, settled])
    assert late(desk, "api")[0] == 0
    # A grant is of one limit; of the other the attempt has the claim's charge still.
    assert late(desk, "other") == (1, ["work"])


def test_a_settlement_after_the_window_is_late_once(desk: Desk) -> None:
    """It says what was used, and comes too late to say when: each limit by its own window."""
    # The usage below is that of one day.
    desk.database.move_to_noon()
    desk.limit("api", requests_per_minute=10).limit("hourly", tokens_per_hour=1000)
    desk.limit("slots", concurrency=5)
    desk.task("api", "hourly", "slots", cost={"tokens": 10}, lease="5 hours")
    notices = notices_of(desk.worker.connection)
    desk.enqueue(4)
    in_time, after_a_minute, after_hours, unused = desk.claim()
    desk.database.move_time("50 seconds")
    assert settle_job(desk, in_time, tokens=7) == "settled"
    desk.database.move_time("50 seconds")
    assert settle_job(desk, after_a_minute, tokens=7) == "settled"
    assert settle_job(desk, unused, requests=0, tokens=0) == "settled"
    desk.operator.value("select trunkline.sweep_buckets()")
    desk.database.move_time("2 hours")
    assert settle_job(desk, after_hours, tokens=7) == "settled"
    assert settle_job(desk, after_hours, tokens=7) == "already"
    desk.end([in_time, after_a_minute, after_hours, unused])
    for _ in range(2):
        assert late(desk, "api") == (2, ["work"])
        assert late(desk, "hourly") == (1, ["work"])
        assert late(desk, "slots")[0] == 0
        desk.operator.value("select trunkline.sweep_buckets()")
    assert {(one["limit"], one["attempts"]) for one in notices} == {("api", 2), ("hourly", 1)}
    assert spent(desk)[0] == ("api", "work", 3, 3, 21)


def test_a_refused_call_is_not_late(desk: Desk) -> None:
    desk.limit("api", requests_per_minute=1).task("api")
    desk.enqueue(1)
    (attempt,) = desk.claim()
    desk.database.move_time("30 seconds")
    assert acquire(desk, attempt=attempt, requests=1).granted
    assert not acquire(desk, attempt=attempt, requests=1).granted
    desk.end([attempt], "snooze", delays=["1 minute"])
    assert late(desk)[0] == 0


def test_an_unstarted_or_lost_attempt_is_not_late(desk: Desk) -> None:
    """No call was made, or nobody knows when the attempt ended."""
    desk.limit("api", requests_per_minute=10).task("api", lease="20 seconds")
    desk.enqueue(2)
    unstarted, _lost = desk.claim()
    desk.database.move_time("16 seconds")
    desk.end([unstarted], "release", reason="busy", unstarted=True)
    desk.database.move_time("1 hour")
    assert len(desk.operator.reclaim()) == 1
    assert late(desk)[0] == 0


def test_the_count_covers_seven_days_and_outlives_the_usage_ledger(desk: Desk) -> None:
    desk.limit("api", requests_per_minute=10).task("api").task("api", task="scan")
    for task, count in (("scan", 2), ("work", 1)):
        desk.enqueue(count, task=task)
        attempts = desk.claim()
        desk.database.move_time("30 seconds")
        desk.end(attempts)
    assert late(desk) == (3, ["scan", "work"])
    for _ in range(2):
        desk.operator.value("select trunkline.sweep_buckets()")
        assert late(desk) == (3, ["scan", "work"])
    # Requests alone are not booked when nobody settles them.
    assert spent(desk) == []
    desk.database.move_time("8 days")
    desk.operator.value("select trunkline.sweep_buckets()")
    assert late(desk) == (0, [])

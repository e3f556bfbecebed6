"""A spent quota refuses new jobs early, low priorities first; a tenant's budget too."""

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from tests.flow.conftest import Desk
from tests.support.internals import rows
from trunkline.errors import QuotaSpent


def spend(desk: Desk, **fields: Any) -> None:
    """Let a job take what it says it will, of whatever it may."""
    desk.producer.enqueue(**fields)
    assert len(desk.claim()) == 1


def refusal(desk: Desk, **fields: Any) -> dict[str, Any]:
    """Why a job is refused, alone and in a batch with the same words, and nothing is kept."""
    with pytest.raises(psycopg.Error) as alone:
        desk.producer.enqueue(**fields)
    with pytest.raises(psycopg.Error) as batch:
        desk.producer.enqueue_many([{"task": "work", **fields}])
    assert alone.value.sqlstate == batch.value.sqlstate == QuotaSpent.sqlstate
    detail = desk.detail(alone.value)
    assert desk.detail(batch.value) == detail | {"index": 0}
    assert rows.count(desk.behind, "waiting") == 0
    return detail


def test_a_spent_quota_refuses_and_names_the_time_of_its_end(desk: Desk) -> None:
    """RF-53, RF-54: 95 of 100 are given out in 30 days; producers are told before they try."""
    desk.limit("api", quota=100).task("api")
    spend(desk, cost={"units": 94})
    spend(desk, cost={"units": 1})
    detail = refusal(desk)
    free_at = datetime.fromisoformat(detail.pop("free_at"))
    assert detail == {
        "code": "quota_spent",
        "limit": "api",
        "unit": "units",
        "quota": 100,
        "given_out_up_to": 95,
        "spent": 95,
    }
    wait = free_at - desk.producer.clock()
    assert timedelta(days=30) <= wait <= timedelta(days=30, hours=1)


def test_what_is_not_spent_does_not_refuse(desk: Desk) -> None:
    """What waits has taken nothing: only the claim takes."""
    desk.limit("api", quota=100).task("api", cost={"units": 50})
    assert len(desk.enqueue(5)) == 5


def test_a_spent_quota_is_free_again_at_the_time_it_named(desk: Desk) -> None:
    desk.limit("api", quota=10, quota_unit="requests").task("api")
    spend(desk, cost={"requests": 9})
    free_at = datetime.fromisoformat(refusal(desk)["free_at"])
    wait = free_at - desk.producer.clock()
    desk.database.move_time(f"{wait.total_seconds() - 60} seconds")
    refusal(desk)
    desk.database.move_time("61 seconds")
    assert desk.producer.enqueue().state == "ready"


def test_low_priorities_stop_first(desk: Desk) -> None:
    """RF-58: above 75 % scheduled work is not produced any more; what is watched still is."""
    desk.limit("api", quota=100).task("api")
    spend(desk, cost={"units": 76})
    detail = refusal(desk, priority=-1)
    assert (detail["given_out_up_to"], detail["only_priorities_from"]) == (75, 0)
    assert [row.state for row in desk.producer.enqueue_many([{"task": "work"}] * 2)] == [
        "ready"
    ] * 2


def test_the_bound_of_low_priorities_can_be_moved(desk: Desk) -> None:
    desk.limit("api", quota=100, quota_low_share=0.5, quota_low_below=10).task("api")
    spend(desk, cost={"units": 50}, priority=10)
    assert refusal(desk, priority=9)["only_priorities_from"] == 10
    assert desk.producer.enqueue(priority=10).state == "ready"


def test_a_tenants_budget_stops_that_tenant_alone(desk: Desk) -> None:
    """A budget of a month for each tenant, beside the limit of the provider."""
    desk.limit("api", requests_per_minute=1000)
    desk.limit("budget/{tenant}", quota=5000, quota_unit="tokens", quota_period="month")
    desk.task("api", "budget/{tenant}")
    spend(desk, tenant="acme", cost={"tokens": 5000})
    detail = refusal(desk, tenant="acme")
    now = desk.producer.clock().astimezone(UTC)
    following = (now.replace(day=1) + timedelta(days=32)).replace(
        day=1, hour=0, minute=0, second=0, microsecond=0
    )
    assert (detail["limit"], detail["quota"], detail["spent"]) == ("budget/acme", 5000, 5000)
    assert datetime.fromisoformat(detail["free_at"]) == following
    assert desk.producer.enqueue(tenant="other").state == "ready"


def test_a_raised_budget_goes_on_at_once(desk: Desk) -> None:
    desk.limit("budget/{tenant}", quota=100, quota_period="day").task("budget/{tenant}")
    spend(desk, tenant="acme", cost={"units": 100})
    refusal(desk, tenant="acme")
    # For this tenant alone: a limit of the filled-in name goes before.
    desk.limit("budget/acme", quota=200, quota_period="day")
    assert desk.producer.enqueue(tenant="acme").state == "ready"
    assert len(desk.claim()) == 1


def test_where_it_does_not_refuse_jobs_wait(desk: Desk) -> None:
    desk.limit("api", quota=100, quota_refuses=False).task("api")
    spend(desk, cost={"units": 95})
    assert desk.producer.enqueue(cost={"units": 1}).state == "ready"
    assert desk.claim() == []


def test_more_than_the_quota_ever_gives_is_refused_as_such(desk: Desk) -> None:
    """It would wait for ever: more than is given out of the whole quota."""
    desk.limit("api", quota=100).task("api")
    for call in (
        lambda: desk.producer.enqueue(cost={"units": 96}),
        lambda: desk.producer.enqueue_many([{"task": "work", "cost": {"units": 96}}]),
    ):
        with pytest.raises(psycopg.Error) as refused:
            call()
        assert desk.detail(refused.value)["code"] == "cost_over_limit"
    assert desk.producer.enqueue(cost={"units": 95}).state == "ready"


def test_a_schedule_does_nothing_while_it_is_spent(desk: Desk) -> None:
    """RF-54: a due time that is refused is recorded and passed over, and the schedule goes on."""
    desk.limit("api", quota=10).task("api")
    spend(desk, cost={"units": 9})
    desk.operator.value("select trunkline.set_schedule('s', '* * * * *', 'work')")
    desk.database.move_time("61 seconds")
    runs = desk.operator.connection.execute("select * from trunkline.run_schedules()").fetchall()
    assert [(run[2], str(run[3])[:5]) for run in runs] == [(None, QuotaSpent.sqlstate)]
    desk.limit("api", quota=100)
    desk.database.move_time("60 seconds")
    runs = desk.operator.connection.execute("select * from trunkline.run_schedules()").fetchall()
    assert [run[3] for run in runs] == [None]


def test_several_are_refused_with_the_first_that_is(desk: Desk) -> None:
    """In a batch of many tasks the index says which job it was."""
    desk.limit("api", quota=10).task("api").task(task="free")
    spend(desk, cost={"units": 9})
    with pytest.raises(psycopg.Error) as refused:
        desk.producer.enqueue_many([{"task": "free"}, {"task": "free"}, {"task": "work"}])
    assert desk.detail(refused.value)["index"] == 2
    assert rows.count(desk.behind, "waiting") == 0

"""What a job used, by attempt and limit: the books of one job."""

from typing import Any
from uuid import UUID

from tests.flow.conftest import Desk
from tests.flow.test_grants import acquire, settle, settle_job
from tests.support.calls import Calls


def account(calls: Calls, job: UUID) -> list[Any]:
    return calls.connection.execute(
        "select name, attempt, calls, requests, tokens, units, cost"
        " from trunkline.usage_of_job(%s)",
        (job,),
    ).fetchall()


def begin(desk: Desk) -> None:
    desk.limit("api", tokens_per_minute=100_000).limit("pages/{tenant}", quota=100)
    desk.task("api", "pages/{tenant}", cost={"tokens": 100, "units": 2})


def test_every_attempt_and_limit_has_its_line(desk: Desk) -> None:
    """The claim's charge, calls within, and attempts that settled nothing."""
    begin(desk)
    (job,) = desk.enqueue(1, tenant="acme")
    (first,) = desk.claim()
    assert account(desk.operator, job) == []
    desk.end([first], "release", reason="again")
    (second,) = desk.claim()
    for tokens, cost in ((40, 0.5), (300, 0.25)):
        grant = acquire(desk, attempt=second, tokens=100, units=1)
        settle(desk, grant.grant_id, tokens=tokens, units=3, cost=cost)
    lines = [
        ("api", 1, 1, 1, 100, 2, 0),
        ("pages/acme", 1, 1, 1, 100, 2, 0),
        ("api", 2, 2, 2, 340, 6, 0.75),
        ("pages/acme", 2, 2, 2, 340, 6, 0),
    ]
    assert account(desk.operator, job) == lines
    # A call that nobody will settle any more counts as estimated, now and in the books.
    assert acquire(desk, attempt=second, tokens=7).granted
    assert account(desk.operator, job) == lines
    desk.end([second])
    lines[2:] = [("api", 2, 3, 3, 347, 6, 0.75), ("pages/acme", 2, 3, 3, 347, 6, 0)]
    assert account(desk.operator, job) == lines
    desk.database.move_time("26 hours")
    desk.operator.value("select trunkline.sweep_buckets()")
    assert account(desk.operator, job) == lines


def test_a_tenant_sees_its_own_jobs_alone(desk: Desk) -> None:
    begin(desk)
    (job,) = desk.enqueue(1, tenant="acme")
    (attempt,) = desk.claim()
    assert settle_job(desk, attempt, tokens=50, cost=1) == "settled"
    lines = [("api", 1, 1, 1, 50, 2, 1), ("pages/acme", 1, 1, 1, 50, 2, 0)]
    for tenant, seen in (("acme", lines), ("zoo", []), ("", lines)):
        scope = "select set_config('trunkline.tenant', %s, false)"
        desk.operator.connection.execute(scope, (tenant,))
        assert account(desk.operator, job) == seen

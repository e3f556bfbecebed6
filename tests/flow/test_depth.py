"""So many jobs may wait for a limit: the next one is refused, or put off."""

from typing import Any

import psycopg
import pytest

from tests.flow.conftest import Desk
from tests.support.internals import rows
from trunkline.errors import LimitQueueFull


def stored(desk: Desk) -> int:
    return rows.count(desk.behind, "waiting")


def refusal(desk: Desk, count: int = 1, **fields: Any) -> dict[str, Any]:
    """Why so many jobs are refused, and that nothing of them is kept."""
    before = stored(desk)
    with pytest.raises(psycopg.Error) as refused:
        desk.enqueue(count, **fields)
    assert refused.value.sqlstate == LimitQueueFull.sqlstate
    assert stored(desk) == before
    return desk.detail(refused.value)


def test_one_more_than_may_wait_is_refused(desk: Desk) -> None:
    """CP-25: a distinct error that says how many wait and what would help."""
    desk.limit("api", concurrency=1, depth_limit=3).task("api")
    desk.enqueue(3)
    assert refusal(desk) == {
        "code": "limit_queue_full",
        "index": 0,
        "limit": "api",
        "waiting": 3,
        "asked": 1,
        "depth_limit": 3,
    }
    desk.limit("api", depth_limit=4)
    desk.enqueue(1)
    assert refusal(desk)["waiting"] == 4


def test_a_job_alone_is_refused_as_one_of_a_batch_is(desk: Desk) -> None:
    desk.limit("api", concurrency=1, depth_limit=1).task("api")
    desk.producer.enqueue()
    with pytest.raises(psycopg.Error) as refused:
        desk.producer.enqueue()
    assert desk.detail(refused.value)["code"] == "limit_queue_full"
    with pytest.raises(psycopg.Error) as batch:
        desk.producer.value("select trunkline.enqueue_batch('work', '[{}]')")
    assert desk.detail(batch.value) == desk.detail(refused.value)
    assert stored(desk) == 1


def test_what_runs_does_not_wait(desk: Desk) -> None:
    desk.limit("api", concurrency=2, depth_limit=2).task("api")
    desk.enqueue(2)
    assert len(desk.claim()) == 2
    desk.enqueue(2)
    assert refusal(desk)["waiting"] == 2


def test_a_batch_counts_itself(desk: Desk) -> None:
    """All or none: what fits of it is not kept."""
    desk.limit("api", concurrency=1, depth_limit=10).task("api")
    desk.enqueue(6)
    detail = refusal(desk, 5)
    assert (detail["waiting"], detail["asked"]) == (6, 5)
    desk.enqueue(4)
    assert stored(desk) == 10


def test_jobs_for_later_wait_too(desk: Desk) -> None:
    desk.limit("api", concurrency=1, depth_limit=2).task("api")
    desk.enqueue(2, delay="1 hour")
    assert refusal(desk)["waiting"] == 2


def test_each_key_has_its_own_depth(desk: Desk) -> None:
    desk.limit("model/{model}", concurrency=1, depth_limit=1).task("model/{model}")
    desk.enqueue(1, payload={"model": "a"})
    desk.enqueue(1, payload={"model": "b"})
    assert refusal(desk, payload={"model": "a"})["limit"] == "model/a"


@pytest.mark.parametrize("limits", [("own/{n}", "api"), ("own/{n}", "other", "api")])
def test_a_job_in_the_lane_of_another_limit_also_counts_as_waiting(
    desk: Desk, limits: tuple[str, ...]
) -> None:
    """A job of several limits counts for each of them, in whose lane it ever stands."""
    desk.limit("api", concurrency=1, depth_limit=2)
    desk.limit("own/{n}", concurrency=1).limit("other", concurrency=9).task(*limits)
    for number in range(2):
        desk.enqueue(1, payload={"n": str(number)})
    assert refusal(desk, payload={"n": "9"})["limit"] == "api"
    # One runs, the other goes to wait in the lane of the limit that has no slot: counted once.
    running = desk.claim() + desk.claim()
    assert len(running) == 1
    desk.enqueue(1, payload={"n": "9"})
    assert refusal(desk, payload={"n": "8"})["waiting"] == 2


def test_a_limit_that_does_not_refuse_defers_further_jobs(desk: Desk) -> None:
    """CP-25: refused or put off, as configured; a batch as one by one."""
    desk.set_limit(
        "api",
        {
            "concurrency": 1,
            "depth_limit": 3,
            "depth_refuses": False,
            "backpressure_delay": "30 seconds",
        },
    )
    desk.task("api")
    rows = desk.producer.enqueue_many([{"task": "work"}] * 5)
    assert [row.state for row in rows] == ["ready"] * 3 + ["scheduled"] * 2
    alone = desk.producer.enqueue()
    batch = desk.producer.enqueue_many([{"task": "work"}] * 2)
    assert [row.state for row in [alone, *batch]] == ["scheduled"] * 3
    waits = desk.behind.execute(
        "select distinct run_at - created_at = '30 seconds' from trunkline.jobs"
        " where state = 'scheduled'"
    ).fetchall()
    assert waits == [(True,)]


def test_a_limit_that_is_not_active_refuses_and_does_not_defer(desk: Desk) -> None:
    """CP-100, CP-25: jobs wait at the claim, and no more of them than may."""
    desk.set_limit("api", {"concurrency": 1, "depth_limit": 1}, "maintenance")
    desk.task("api")
    desk.enqueue(1)
    refusal(desk)
    desk.set_limit("api", {"depth_refuses": False})
    rows = desk.producer.enqueue_many([{"task": "work"}] * 2)
    assert [row.state for row in rows] == ["ready", "ready"]


def test_what_is_there_already_is_answered(desk: Desk) -> None:
    """A duplicate is no new job: it is never refused for the depth."""
    desk.limit("api", concurrency=1, depth_limit=2).task("api")
    first = desk.producer.enqueue(unique_key="u")
    second = desk.producer.enqueue(idempotency_key="i")
    again = [desk.producer.enqueue(unique_key="u"), desk.producer.enqueue(idempotency_key="i")]
    assert [row.job_id for row in again] == [first.job_id, second.job_id]
    assert not any(row.created for row in again)
    with pytest.raises(psycopg.Error):
        desk.producer.enqueue(unique_key="new")
    assert stored(desk) == 2


def test_a_depth_of_zero_lets_nobody_in(desk: Desk) -> None:
    desk.limit("api", concurrency=1, depth_limit=0).task("api")
    assert refusal(desk, 2)["asked"] == 2
    with pytest.raises(psycopg.Error):
        desk.producer.enqueue()
    assert stored(desk) == 0


CLOSED = {
    "limit_queue_full": "select trunkline.set_limit('api', '{\"depth_limit\": 1}')",
    "quota_spent": "select trunkline.set_limit('api',"
    ' \'{"quota": 0, "quota_unit": "requests", "quota_window": "1 hour"}\')',
    "queue_full": "select trunkline.limit_queue('default', 1)",
    "queue_paused": "select trunkline.pause_queue('default', 'x', p_refuse_enqueue => true)",
}


@pytest.mark.parametrize("closed", CLOSED)
def test_what_was_accepted_before_waits(desk: Desk, closed: str) -> None:
    """CP-08: what follows from a job that was taken is not refused where a new one is."""
    desk.limit("api", concurrency=1).task("api")
    desk.enqueue(1)
    desk.operator.connection.execute(CLOSED[closed].encode())
    with pytest.raises(psycopg.Error) as refused:
        desk.producer.value("select trunkline.enqueue('work')")
    assert desk.detail(refused.value)["code"] == closed
    state = desk.producer.value("select (trunkline.enqueue('work', p_accepted => true)).state")
    assert (state, stored(desk)) == ("ready", 2)
    many = 'select state from trunkline.enqueue_many(\'[{"task": "work", "accepted": true}]\')'
    assert (desk.producer.value(many), stored(desk)) == ("ready", 3)


def test_an_accepted_job_is_deferred_like_others(desk: Desk) -> None:
    """Only refusals are passed over: a limit that puts jobs off does so."""
    desk.limit("api", concurrency=1, depth_limit=1, depth_refuses=False).task("api")
    desk.enqueue(1)
    state = desk.producer.value("select (trunkline.enqueue('work', p_accepted => true)).state")
    assert state == "scheduled"


def test_a_tenant_cannot_say_that_its_work_was_accepted(desk: Desk) -> None:
    """It would pass by its own budget."""
    desk.task()
    desk.producer.value("select set_config('trunkline.tenant', 'acme', false)")
    with pytest.raises(psycopg.Error) as refused:
        desk.producer.value("select trunkline.enqueue('work', p_accepted => true)")
    assert desk.detail(refused.value)["argument"] == "p_accepted"
    with pytest.raises(psycopg.Error, match="invalid"):
        desk.producer.value(
            'select trunkline.enqueue_many(\'[{"task": "work", "accepted": true}]\')'
        )
    assert stored(desk) == 0

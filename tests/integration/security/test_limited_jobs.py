"""A session that acts for one tenant and the limited jobs of another."""

from datetime import timedelta

import pytest

from tests.flow.conftest import Desk
from tests.support.calls import Attempt, Calls
from tests.support.databases import Database


@pytest.fixture
def desk(database: Database) -> Desk:
    return Desk(database)


def narrowed(desk: Desk, role: str = "worker") -> Calls:
    connection = desk.database.connect(f"trunkline_{role}")
    connection.execute("select set_config('trunkline.tenant', 'ours', false)")
    return Calls(connection)


def started(desk: Desk, tenant: str = "theirs") -> Attempt:
    """A running job that was charged 400 tokens."""
    desk.limit("api", tokens_per_minute=5000, concurrency=5).task("api", cost={"tokens": 400})
    desk.enqueue(1, tenant=tenant)
    (attempt,) = desk.claim()
    return attempt


def charged(desk: Desk) -> tuple[int, int]:
    bucket = desk.bucket("api")
    return bucket["in_use"], bucket["tokens_of_minute"]


SETTLE = "select trunkline.settle_job(%s, %s, '{\"tokens\": 5}')"


def test_a_job_of_another_tenant_is_not_settled(desk: Desk) -> None:
    theirs = started(desk)
    assert narrowed(desk).value(SETTLE, theirs.job, theirs.number) == "unknown"
    assert charged(desk) == (1, 400)
    assert desk.worker.value(SETTLE, theirs.job, theirs.number) == "settled"
    assert narrowed(desk).value(SETTLE, theirs.job, theirs.number) == "unknown"
    ours = started(desk, "ours")
    assert narrowed(desk).value(SETTLE, ours.job, ours.number) == "settled"
    assert charged(desk) == (2, 10)


def test_a_job_of_another_tenant_is_not_refunded(desk: Desk) -> None:
    theirs = started(desk)
    (verdict,) = narrowed(desk).batch("release", "w", [theirs], unstarted=True)
    assert verdict.verdict == "lost"
    assert charged(desk) == (1, 400)
    ours = started(desk, "ours")
    (verdict,) = narrowed(desk).batch("release", "w", [ours], unstarted=True)
    assert verdict.verdict == "ok"
    assert charged(desk) == (1, 400)


@pytest.mark.parametrize("how", ["heartbeat", "complete", "fail", "release", "snooze"])
def test_one_batch_touches_the_own_jobs_alone(desk: Desk, how: str) -> None:
    """The other half of the batch is lost for this caller, and runs on."""
    attempts = [started(desk, tenant) for tenant in ("ours", "theirs")]
    more = {"delays": [timedelta(hours=1)] * 2} if how == "snooze" else {}
    found = narrowed(desk).batch(how, "w", attempts, **more)
    verdicts = {verdict.job: verdict.verdict for verdict in found}
    assert verdicts[attempts[1].job] == "lost"
    # Completions that went well are not answered.
    assert verdicts.get(attempts[0].job, "ok") == "ok"
    state = "select state from trunkline.jobs where job_id = %s"
    assert desk.operator.value(state, attempts[1].job) == "running"
    desk.end([attempts[1]])


def test_a_worker_of_a_tenant_sleeps_until_its_own_next_job(desk: Desk) -> None:
    """The due time of another tenant's job is not told."""
    desk.task()
    theirs = desk.producer.enqueue(tenant="theirs", delay=timedelta(seconds=10)).run_at
    ours = desk.producer.enqueue(tenant="ours", delay=timedelta(seconds=40)).run_at
    worker = narrowed(desk)
    worker.connection.execute("select trunkline.register_worker('sleeper')")
    assert theirs < worker.value("select trunkline.sleep('sleeper')") <= ours
    desk.worker.connection.execute("select trunkline.register_worker('all')")
    assert desk.worker.value("select trunkline.sleep('all')") <= theirs


def test_a_worker_of_a_tenant_hands_back_its_own_unknown_jobs(desk: Desk) -> None:
    theirs, ours = started(desk), started(desk, "ours")
    rows = narrowed(desk).connection.execute(
        "select job_id from trunkline.release_forgotten('w', '{}')"
    )
    assert [row[0] for row in rows.fetchall()] == [ours.job]
    state = "select state from trunkline.jobs where job_id = %s"
    assert desk.operator.value(state, theirs.job) == "running"


def test_health_counts_the_own_deferred_jobs(desk: Desk) -> None:
    """A job that was snoozed longer ago than it may be."""
    desk.task()
    for tenant in ("theirs", "ours"):
        desk.enqueue(1, tenant=tenant)
        held = desk.claim()
        desk.worker.put_off("w", held, timedelta(days=1))
    desk.database.move_time("10 days")
    check = "select (detail ->> 'jobs')::int from trunkline.health()"
    check += " where \"check\" = 'deferred work'"
    assert desk.operator.value(check) == 2
    assert narrowed(desk, "operator").value(check) == 1

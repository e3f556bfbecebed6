"""Every other verb of the operator works, leaves its line in the log, and respects the roles."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.operate.conftest import Scene
from trunkline.errors import (
    NeedsAllTenants,
    SchemaForbidden,
    TenantDenied,
    UnknownJob,
    UnknownLimit,
    UnknownQueue,
    UnknownSchedule,
    UnknownSetting,
    UnknownTask,
    UnknownWorker,
)
from trunkline.operate import ActivityLine, SyncOperator

Verb = Callable[[SyncOperator], Any]
NOBODY = "00000000-0000-7000-8000-000000000000"

READS: dict[str, Verb] = {
    "queues": lambda operator: operator.queues.list(),
    "limits": lambda operator: operator.limits.list(),
    "buckets": lambda operator: operator.limits.buckets("api"),
    "quotas": lambda operator: operator.quotas.list(),
    "usage": lambda operator: operator.quotas.usage("task"),
    "breakers": lambda operator: operator.breakers.list(),
    "schedules": lambda operator: operator.schedules.list(),
    "workers": lambda operator: operator.workers.list(),
    "duties": lambda operator: operator.duties.list(),
    "settings": lambda operator: operator.settings.list(),
    "tasks": lambda operator: operator.tasks.list(),
    "task": lambda operator: operator.tasks.get("work"),
    "usage of a job": lambda operator: operator.jobs.usage(NOBODY),
    "activity": lambda operator: operator.activity.recent(),
    "log": lambda operator: operator.log.list(),
    "groups": lambda operator: operator.dead.groups(),
    "health": lambda operator: operator.health(),
}
# The roles that may read besides operator and reader.
ALSO = {
    "settings": {"producer", "worker"},
    "tasks": {"producer", "worker"},
    "task": {"producer", "worker"},
    "health": {"worker"},
}
CHANGES: dict[str, Verb] = {
    "pause_queue": lambda operator: operator.queues.pause("q", reason="r"),
    "limit_queue": lambda operator: operator.queues.limit("q", 5, reason="r"),
    "age_queue": lambda operator: operator.queues.age("q", reason="r"),
    "set_limit": lambda operator: operator.limits.set("new", {"concurrency": 1}, reason="r"),
    "set_setting": lambda operator: operator.settings.set("lease", "10 minutes", reason="r"),
    "enable_duty": lambda operator: operator.duties.disable("promote", reason="r"),
    "trip_breaker": lambda operator: operator.breakers.trip("api", length="1m", reason="r"),
    "set_schedule": lambda operator: operator.schedules.set("s", "@daily", "work", reason="r"),
    "drain_worker": lambda operator: operator.workers.drain("w1", reason="r"),
}


@pytest.fixture
def ready(scene: Scene) -> Scene:
    """With a limit that code declared, which is no action of an operator, and a worker."""
    scene.calls.connection.execute(
        "select trunkline.register_tasks(%s)",
        ('[{"task": "paid", "declares": {"api": {"concurrency": 1, "breaker_failures": 3}}}]',),
    )
    scene.calls.connection.execute("select trunkline.register_worker('w1')")
    return scene


@pytest.mark.parametrize("role", ["operator", "producer", "worker", "reader"])
def test_each_role_reads_what_it_may(ready: Scene, role: str) -> None:
    operator = ready.as_role(role)
    for name, read in READS.items():
        if role in {"operator", "reader", *ALSO.get(name, ())}:
            read(operator)
        else:
            with pytest.raises(SchemaForbidden):
                read(operator)


@pytest.mark.parametrize("role", ["producer", "worker", "reader"])
def test_only_an_operator_changes_anything(ready: Scene, role: str) -> None:
    operator = ready.as_role(role)
    for change in CHANGES.values():
        with pytest.raises(SchemaForbidden):
            change(operator)
    assert ready.operator.log.list() == []


def test_a_change_is_logged_with_actor_and_reason(ready: Scene) -> None:
    for change in CHANGES.values():
        change(ready.operator)
    lines = ready.operator.log.list()[::-1]
    assert [line.action for line in lines] == [*CHANGES]
    assert {(line.actor, line.reason) for line in lines} == {("ann", "r")}


@pytest.mark.parametrize("name", sorted(CHANGES.keys() - {"set_schedule"}))
def test_a_tenant_changes_nothing_that_affects_others(ready: Scene, name: str) -> None:
    tenant = ready.as_role("operator", tenant="a")
    with pytest.raises((NeedsAllTenants, TenantDenied, UnknownWorker)):
        CHANGES[name](tenant)
    assert ready.operator.log.list() == []


def test_a_tenant_reads_its_own(ready: Scene) -> None:
    for owner in "ab":
        ready.calls.enqueue(tenant=owner, queue=f"of {owner}")
        ready.operator.schedules.set(f"of {owner}", "@daily", "work", tenant=owner)
    tenant = ready.as_role("operator", tenant="a")
    assert [queue.queue for queue in tenant.queues.list()] == ["of a"]
    assert [schedule.schedule for schedule in tenant.schedules.list()] == ["of a"]
    assert {line.tenant for line in tenant.activity.recent()} == {"a"}
    assert (tenant.limits.list(), tenant.workers.list()) == ([], [])
    tenant.schedules.pause("of a")
    with pytest.raises(UnknownSchedule):
        tenant.schedules.pause("of b")
    assert {line.tenant for line in tenant.log.list()} == {"a"}


def test_queues(scene: Scene) -> None:
    queues = scene.operator.queues
    scene.calls.fill(3)
    queues.pause("default", reason="strike", refuse_enqueue=True)
    queues.limit("default", 10)
    queues.age("default")
    [queue] = queues.list()
    assert (queue.paused, queue.paused_reason, queue.ready) == (True, "strike", 3)
    assert (queue.max_depth, queue.ageing) == (10, True)
    assert queues.resume("default") is True
    assert queues.resume("default") is False
    with pytest.raises(UnknownQueue):
        queues.resume("nowhere")


def test_limits_quotas_and_breakers(scene: Scene) -> None:
    operator = scene.operator
    assert operator.limits.set("api", {"requests_per_minute": 60}) is True
    assert operator.quotas.set("api", {"quota": 100, "quota_unit": "requests"}) is False
    assert operator.breakers.set("api", {"breaker_failures": 3}) is False
    limit = operator.limits.get("api")
    assert (limit.requests_per_minute, limit.quota, limit.breaker_failures) == (60, 100, 3)
    [quota] = operator.quotas.list("api")
    assert (quota.quota, quota.unit) == (100, "requests")
    operator.limits.pause("api", reason="new key")
    assert operator.limits.get("api").status == "maintenance"
    scene.calls.connection.execute("select trunkline.observe_limit('api', '{\"retry_after\": 60}')")
    assert operator.limits.resume("api") == ["api"]
    assert operator.limits.get("api").status == "active"
    assert operator.limits.buckets("api")[0].paused_until is None
    due = operator.breakers.trip("api", length="1h")
    [breaker] = operator.breakers.list()
    assert (breaker.state, breaker.probe_at) == ("open", due)
    assert operator.breakers.reset("api") == 1
    with pytest.raises(UnknownLimit):
        operator.limits.pause("nowhere")
    with pytest.raises(UnknownLimit):
        operator.breakers.trip("nowhere")


def test_usage_of_a_job(scene: Scene) -> None:
    operator = scene.operator
    operator.limits.set("api", {"tokens_per_minute": 100})
    scene.calls.register("paid", limits=["api"], cost={"tokens": 5})
    job = scene.calls.enqueue("paid").job_id
    scene.calls.claim("w")
    scene.calls.connection.execute("select trunkline.settle_job(%s, 1, '{\"tokens\": 7}')", (job,))
    assert [line.tokens for line in operator.jobs.usage(str(job))] == [7]
    scene.calls.connection.execute("select trunkline.sweep_buckets()")
    assert [line.limit for line in operator.quotas.usage("limit")] == ["api"]


def test_schedules(scene: Scene) -> None:
    schedules = scene.operator.schedules
    made = schedules.set("nightly", "0 3 * * *", "work", payload={"n": 1}, time_zone="Europe/Paris")
    assert made.created
    assert schedules.pause("nightly").paused
    [schedule] = schedules.list()
    assert (schedule.cron, schedule.paused, schedule.payload) == ("0 3 * * *", True, {"n": 1})
    assert schedules.get("nightly") == schedule
    with pytest.raises(UnknownSchedule) as caught:
        schedules.get("daily")
    assert caught.value.detail["known"] == ["nightly"]
    assert not schedules.resume("nightly").paused
    schedules.remove("nightly")
    assert schedules.list() == []
    with pytest.raises(UnknownSchedule):
        schedules.remove("nightly")
    after = datetime(2026, 1, 1, tzinfo=UTC)
    due = schedules.next_due("0 3 * * *", after=after, count=2)
    assert due == [after + timedelta(hours=3), after + timedelta(hours=27)]


def test_workers(scene: Scene) -> None:
    scene.calls.connection.execute("select trunkline.register_worker('w1')")
    workers = scene.operator.workers
    assert [(worker.worker, worker.state) for worker in workers.list()] == [("w1", "active")]
    assert workers.drain("w1") == "draining"
    scene.calls.connection.execute("select trunkline.stop_worker('w1')")
    assert workers.list() == []
    assert [worker.worker for worker in workers.list(everyone=True)] == ["w1"]
    with pytest.raises(UnknownWorker):
        workers.drain("w2")


def test_duties(scene: Scene) -> None:
    duties = scene.operator.duties
    duties.disable("promote")
    assert {duty.duty for duty in duties.list() if not duty.enabled} == {"promote"}
    duties.enable("promote")
    assert duties.run("promote").ran
    scene.database.move_time("1 hour")
    assert {run.duty for run in duties.run_due()} == {duty.duty for duty in duties.list()}
    assert list(duties.run_due()) == []
    superuser = scene.calls.connection
    superuser.execute("create schema mine authorization trunkline_owner")
    superuser.execute("create function mine.tidy() returns integer language sql as 'select 0'")
    superuser.execute("alter function mine.tidy() owner to trunkline_owner")
    with pytest.raises(SchemaForbidden):
        duties.add("tidy", "mine.tidy", "1h")
    with SyncOperator(scene.database.superuser_dsn) as owner:
        owner.duties.add("tidy", "mine.tidy", "1h", description="Tidies.")
        [duty] = [duty for duty in owner.duties.list() if duty.duty == "tidy"]
        assert (duty.every, duty.description) == (timedelta(hours=1), "Tidies.")
        owner.duties.remove("tidy")
        assert "tidy" not in {duty.duty for duty in owner.duties.list()}


def test_settings_and_health(scene: Scene) -> None:
    settings = scene.operator.settings
    assert settings.set("lease", "10 minutes") == "10 minutes"
    assert settings.get("lease").origin != "default"
    assert settings.reset("lease") == "300 seconds"
    with pytest.raises(UnknownSetting):
        settings.get("nothing")
    with pytest.raises(UnknownSetting):
        settings.set("nothing", "1")
    assert "duty promote" in {check.check for check in scene.operator.health()}


def test_tasks_have_their_limits_and_schedules(scene: Scene) -> None:
    operator = scene.operator
    operator.limits.set("api/{tenant}", {"tokens_per_minute": 100})
    scene.calls.register("paid", limits=["api/{tenant}"], cost={"tokens": 5})
    operator.schedules.set("nightly", "0 3 * * *", "paid", tenant="a")
    operator.schedules.set("weekly", "@weekly", "paid", tenant="b")
    operator.schedules.pause("weekly")
    paid, work = operator.tasks.list()
    assert (paid.task, paid.limits, paid.cost) == ("paid", ["api/{tenant}"], {"tokens": 5})
    assert paid.schedules == {"nightly": "0 3 * * *", "weekly": "@weekly"}
    assert (work.task, work.limits, work.cost, work.schedules) == ("work", [], None, {})
    assert operator.tasks.get("paid") == paid
    with pytest.raises(UnknownTask) as refused:
        operator.tasks.get("nobody")
    assert refused.value.detail["known"] == ["paid", "work"]


def test_a_tenant_sees_the_schedules_of_its_own_jobs_with_a_task(scene: Scene) -> None:
    for tenant in "ab":
        scene.operator.schedules.set(f"of {tenant}", "@daily", "work", tenant=tenant)
    [task] = scene.as_role("operator", tenant="a").tasks.list()
    assert task.schedules == {"of a": "@daily"}


def test_one_job(scene: Scene) -> None:
    jobs = scene.operator.jobs
    job = scene.calls.enqueue(payload={"n": 1}).job_id
    assert jobs.get(str(job)).payload == {"n": 1}
    assert {reason.reason for reason in jobs.explain(job)} == {"no_worker", "waiting_its_turn"}
    assert jobs.cancel(job).outcome == "cancelled"
    with pytest.raises(UnknownJob):
        jobs.get(NOBODY)


def test_activity_is_followed_as_it_happens(scene: Scene) -> None:
    scene.finish(1)
    before = scene.operator.activity.recent(10)
    assert [line.event for line in before] == ["enqueued", "started", "completed"]
    assert scene.operator.activity.recent(1, states=["completed"]) == before[-1:]
    assert scene.operator.activity.recent(10, queue="elsewhere") == []
    seen: list[ActivityLine] = []
    started = threading.Event()

    def follow() -> None:
        for line in scene.operator.activity.follow(1):
            seen.append(line)
            started.set()
            if len(seen) == 4:
                return

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    assert started.wait(30)
    [dead] = scene.bury(1)
    thread.join(30)
    assert [line.event for line in seen] == ["completed", "enqueued", "started", "failed"]
    assert {line.job_id for line in seen[1:]} == {dead}

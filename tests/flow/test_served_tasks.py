"""A claim for some tasks, or for one tenant, takes no other job, whatever limits its jobs have."""

from typing import Any, NamedTuple
from uuid import UUID

import pytest

from tests.flow.conftest import Desk
from tests.support.calls import Calls, Position


class Kind(NamedTuple):
    """Limits that jobs of both tasks share, and what a job takes of them."""

    limits: dict[str, dict[str, Any]]
    cost: dict[str, int] = {}  # noqa: RUF012


# Claims of a hundred find the first ones narrow, the wide ones wide.
KINDS = {
    "none": Kind({}),
    "slots": Kind({"api": {"concurrency": 20}}),
    "requests": Kind({"api": {"requests_per_minute": 20}}),
    "tokens": Kind({"api": {"tokens_per_hour": 20}}, {"tokens": 1}),
    "quota": Kind({"api": {"quota": 20, "quota_unit": "requests", "quota_window": "1 day"}}),
    "breaker": Kind({"api": {"breaker_failures": 3}}),
    "two": Kind({"api": {"concurrency": 20}, "all": {"requests_per_minute": 20}}),
    "slots of keys": Kind({"key/{key}": {"concurrency": 4}}),
    "requests of keys": Kind({"key/{key}": {"requests_per_minute": 4}}),
    "wide slots": Kind({"api": {"concurrency": 100_000}}),
    "wide requests": Kind({"api": {"requests_per_minute": 100_000}}),
    "wide tokens": Kind({"api": {"tokens_per_minute": 100_000}}, {"tokens": 1}),
    "wide for a few": Kind({"api": {"concurrency": 1000}}),
    "wide keys": Kind({"key/{key}": {"concurrency": 100_000}}),
    "share group": Kind({"fair:work/{tenant}": {}}),
    "share group of keys": Kind({"fair:work/{key}": {}}),
    "share group of slots": Kind({"fair:work/{tenant}": {}, "api": {"concurrency": 20}}),
    "share group of requests": Kind({"fair:work/{key}": {}, "api": {"requests_per_minute": 20}}),
}


def prepare(desk: Desk, kind: str) -> None:
    limits, cost = KINDS[kind]
    for name, parts in limits.items():
        desk.limit(name, **parts)
    for task in ("served", "other"):
        desk.task(*limits, task=task, cost=cost)


def enqueue(desk: Desk, task: str, tenant: str = "t", **more: Any) -> set[UUID]:
    """Enqueue four jobs, one for each key."""
    jobs = [{"task": task, "tenant": tenant, "payload": {"key": key}, **more} for key in "abcd"]
    return {row.job_id for row in desk.producer.enqueue_many(jobs)}


def served(desk: Desk, *tasks: str, position: Position | None = None) -> set[UUID]:
    """Claim as a worker that serves only these tasks."""
    return set(desk.worker.claim("w", 100, tasks=list(tasks), position=position).jobs)


@pytest.mark.parametrize("position", [None, {}], ids=["anywhere", "from a position"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_claim_for_a_task_takes_no_other(
    desk: Desk, kind: str, position: Position | None
) -> None:
    """Also if jobs of another task have a higher priority and came first."""
    prepare(desk, kind)
    others = enqueue(desk, "other", priority=5)
    jobs = enqueue(desk, "served")
    others |= enqueue(desk, "other")
    assert served(desk, "nothing", position=position) == set()
    assert served(desk, "served", position=position) == jobs
    assert served(desk, "served", position=position) == set()
    assert served(desk, "other", "nothing", position=position) == others


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_handed_back_goes_to_workers_that_serve_it(desk: Desk, kind: str) -> None:
    prepare(desk, kind)
    others, jobs = enqueue(desk, "other"), enqueue(desk, "served")
    attempts = desk.claim()
    assert {attempt.job for attempt in attempts} == jobs | others
    desk.end(attempts, "release", unstarted=True)
    assert served(desk, "served") == jobs
    assert served(desk, "other") == others


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_that_becomes_due_goes_to_workers_that_serve_it(desk: Desk, kind: str) -> None:
    prepare(desk, kind)
    others = enqueue(desk, "other", delay="1 minute", priority=5)
    jobs = enqueue(desk, "served", delay="1 minute")
    desk.database.move_time("2 minutes")
    assert served(desk, "served") == jobs
    assert served(desk, "other") == others


def narrowed(desk: Desk, tenant: str | None) -> Calls:
    """Connect as a worker that acts for one tenant, or for all."""
    worker = desk.database.connect("trunkline_worker")
    worker.execute("select set_config('trunkline.tenant', %s, false)", (tenant or "",))
    return Calls(worker)


@pytest.mark.parametrize("position", [None, {}], ids=["anywhere", "from a position"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_claim_for_a_tenant_takes_no_other(
    desk: Desk, kind: str, position: Position | None
) -> None:
    prepare(desk, kind)
    theirs = enqueue(desk, "served", "theirs", priority=5)
    ours = enqueue(desk, "served", "ours")
    assert set(narrowed(desk, "ours").claim("w", 100, position=position).jobs) == ours
    assert set(desk.claimed()) == theirs


@pytest.mark.parametrize("differs", ["tasks", "queues", "tenant"])
def test_a_position_of_another_claim_hides_no_job(desk: Desk, differs: str) -> None:
    """It says where a claim for the same tasks, queues and tenant has been, and no other."""
    desk.task(task="other").task(task="served")
    # The job to be found later comes first, so that the position lies behind it.
    queue = "there" if differs == "queues" else "here"
    jobs = enqueue(desk, "served", "ours", queue=queue)
    enqueue(desk, "other", "theirs", queue="here")
    ours, theirs = (narrowed(desk, t if differs == "tenant" else None) for t in ("ours", "theirs"))
    queues = {"served": [queue], "other": ["here"]}
    tasks = {"served": ["served"], "other": ["other"]}
    if differs != "tasks":
        tasks = {task: ["served", "other"] for task in tasks}
    position: Position | None = {}
    for expected in (4, 0, 0):
        claim = theirs.claim(
            "w", 100, queues=queues["other"], tasks=tasks["other"], position=position
        )
        assert len(claim.rows) == expected
        position = claim.position
    claim = ours.claim("w", 100, queues=queues["served"], tasks=tasks["served"], position=position)
    assert set(claim.jobs) == jobs


@pytest.mark.parametrize("tenant", [None, "ours"])
def test_a_claim_that_scans_again_still_takes_only_tasks_it_serves(
    desk: Desk, tenant: str | None
) -> None:
    """Somebody holds one of two wide limits, which shows only when it is to be charged."""
    for name in ("one", "two"):
        desk.limit(name, concurrency=64)
        for task in ("served", "other"):
            desk.task(name, task=f"{task} {name}")
    tasks = ["served one", "served two"]
    holder = desk.database.connect("trunkline_worker", autocommit=False)
    desk.enqueue(30, task="served one", tenant="ours")
    assert len(Calls(holder).claim("holder", 20).rows) == 20
    if tenant is None:
        desk.enqueue(2, task="other two", tenant="ours", priority=5)
    else:
        desk.enqueue(2, task="served two", tenant="theirs", priority=5)
    jobs = desk.enqueue(1, task="served two", tenant="ours")
    assert narrowed(desk, tenant).claim("w", 4, tasks=tasks).jobs == jobs
    holder.commit()

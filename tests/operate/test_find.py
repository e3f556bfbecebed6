"""Jobs are found by each field of a filter, page by page, in every state."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from tests.operate.conftest import Scene, dsn_as
from trunkline.errors import InvalidArgument, InvalidFilter, LimitOutOfRange, SchemaForbidden
from trunkline.model import JobState
from trunkline.operate import AsyncOperator, JobFilter, StateCount


def ids(scene: Scene, **fields: Any) -> list[Any]:
    return [job.id for job in scene.operator.jobs.find(JobFilter(**fields)).jobs]


def test_each_field_selects_its_jobs(scene: Scene) -> None:
    scene.calls.register("other")
    plain = scene.calls.enqueue().job_id
    special = scene.calls.enqueue(
        "other",
        queue="elsewhere",
        tenant="acme",
        unique_key="key",
        correlation_id="order-7",
        tags=["red", "round"],
    ).job_id
    [dead] = scene.bury(error="Timeout while calling 'api'", tags=["red"])
    [done] = scene.finish(correlation_id="order-7")
    assert ids(scene) == [done, dead, special, plain]
    assert ids(scene, task="other") == [special]
    assert ids(scene, queue="elsewhere") == [special]
    assert ids(scene, tenant="acme") == [special]
    assert ids(scene, unique_key="key") == [special]
    assert ids(scene, tag="red") == [dead, special]
    assert ids(scene, tag="round") == [special]
    assert ids(scene, tag="roun") == []
    assert ids(scene, correlation_id="order-7") == [done, special]
    assert ids(scene, correlation_id="order-7", task="work") == [done]
    assert ids(scene, tag="red", state=JobState.DEAD) == [dead]
    assert ids(scene, state="completed") == [done]
    assert ids(scene, state=["completed", JobState.DEAD]) == [done, dead]
    assert ids(scene, error="TIMEOUT while") == [dead]
    assert ids(scene, error="valueerror") == [dead]
    assert ids(scene, acknowledged=False) == [dead]
    assert ids(scene, acknowledged=True) == []
    assert ids(scene, job_ids=[plain, str(done), uuid4()]) == [done, plain]
    assert ids(scene, job_ids=[plain, done], state="ready") == [plain]


def test_a_label_is_kept_while_the_job_moves(scene: Scene) -> None:
    job = scene.calls.enqueue(tags=["kept"]).job_id
    [one] = scene.calls.claim("w").attempts
    assert ids(scene, tag="kept", state="running") == [job]
    scene.fail([job], "boom", one.number)
    assert ids(scene, tag="kept", state="dead") == [job]
    scene.operator.jobs.retry(job)
    assert ids(scene, tag="kept", state="ready") == [job]


def test_times_of_creation_and_of_the_end_are_bounds(scene: Scene) -> None:
    [old] = scene.finish()
    scene.database.move_time("1 hour")
    [late] = scene.bury()
    waiting = scene.calls.enqueue().job_id
    middle = datetime.now(UTC) + timedelta(minutes=30)
    assert ids(scene, created_from=middle) == [waiting, late]
    assert ids(scene, created_before=middle) == [old]
    # A job that still waits has not finished.
    assert ids(scene, finished_from=middle) == [late]
    assert ids(scene, finished_before=middle) == [old]
    assert ids(scene, finished_before=middle, finished_from=middle) == []
    [job] = scene.operator.jobs.find(JobFilter(job_ids=[late])).jobs
    assert job.finished_at is not None
    # The lower bound is part of the range, the upper one is not.
    assert ids(scene, finished_from=job.finished_at) == [late]
    assert ids(scene, finished_before=job.finished_at) == [old]
    assert ids(scene, created_from=job.created_at, created_before=waiting_time(scene)) == [late]


def waiting_time(scene: Scene) -> datetime:
    [job] = scene.operator.jobs.find(JobFilter(state="ready")).jobs
    return job.created_at


@pytest.mark.parametrize("fields", [{}, {"tag": "t"}, {"correlation_id": "c"}, {"task": "work"}])
def test_pages_show_every_job_once_newest_first(scene: Scene, fields: dict[str, Any]) -> None:
    labels: dict[str, Any] = {"tags": ["t"], "correlation_id": "c"}
    made = scene.calls.fill(30, **labels) + scene.finish(30, **labels) + scene.bury(20, **labels)
    found, cursor, pages = [], None, 0
    while pages == 0 or cursor is not None:
        page = scene.operator.jobs.find(JobFilter(**fields), limit=7, cursor=cursor)
        found += [job.id for job in page.jobs]
        cursor, pages = page.next, pages + 1
    assert found == sorted(made, reverse=True)
    assert pages >= 80 // 7
    assert [job.id for job in scene.operator.jobs.find_all(JobFilter(**fields))] == found


def test_a_rare_job_behind_many_others_is_found_by_going_on(scene: Scene) -> None:
    scene.calls.register("rare")
    rare = scene.calls.enqueue("rare").job_id
    for _ in range(21):
        scene.calls.fill(1000)
    first = scene.operator.jobs.find(JobFilter(task="rare"))
    assert first.jobs == []
    assert first.next is not None
    assert [job.id for job in scene.operator.jobs.find_all(JobFilter(task="rare"))] == [rare]


def test_counts_are_by_state_and_bounded(scene: Scene) -> None:
    scene.finish(3, tags=["x"])
    scene.bury(2)
    for _ in range(11):
        scene.calls.fill(1000)
    counts = {count.state: count for count in scene.operator.jobs.count()}
    assert counts[JobState.READY] == StateCount(JobState.READY, 10_000, True)
    assert counts[JobState.COMPLETED] == StateCount(JobState.COMPLETED, 3, False)
    assert counts[JobState.DEAD] == StateCount(JobState.DEAD, 2, False)
    assert len(counts) == len(JobState)
    tagged = scene.operator.jobs.count(JobFilter(tag="x", state=["completed", "ready"]))
    assert tagged == [
        StateCount(JobState.READY, 0, False),
        StateCount(JobState.COMPLETED, 3, False),
    ]


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ('{"colour": "red"}', "colour"),
        ('{"task": 3}', "task"),
        ('{"task": ""}', "task"),
        ('{"state": "sleeping"}', "state"),
        ('{"state": []}', "state"),
        ('{"state": {"a": 1}}', "state"),
        ('{"created_from": "soon"}', "created_from"),
        ('{"created_from": "infinity"}', "created_from"),
        ('{"finished_before": 7}', "finished_before"),
        ('{"acknowledged": "yes"}', "acknowledged"),
        ('{"job_ids": ["x"]}', "job_ids"),
        ('{"job_ids": [null]}', "job_ids"),
        ('{"job_ids": []}', "job_ids"),
    ],
)
def test_a_bad_filter_is_refused_with_its_field(scene: Scene, document: str, field: str) -> None:
    from trunkline.db.translate import translated  # noqa: PLC0415

    for function in ("search_jobs", "count_jobs"):
        with pytest.raises(InvalidFilter) as refused, translated():
            scene.calls.connection.execute(f"select trunkline.{function}(%s)", (document,))
        assert refused.value.detail["field"] == field


def test_bad_values_are_refused_in_python_too(scene: Scene) -> None:
    find = scene.operator.jobs.find
    with pytest.raises(InvalidFilter):
        find(JobFilter(created_from=datetime(2026, 1, 1)))  # noqa: DTZ001
    with pytest.raises(InvalidFilter):
        find(JobFilter(task=3))  # type: ignore[arg-type]
    with pytest.raises(LimitOutOfRange):
        find(limit=0)
    with pytest.raises(InvalidArgument):
        find(cursor="nowhere")


@pytest.mark.parametrize("role", ["operator", "producer", "reader"])
def test_these_roles_find_jobs(scene: Scene, role: str) -> None:
    scene.calls.fill(2)
    jobs = scene.as_role(role).jobs
    assert len(jobs.find().jobs) == 2
    assert jobs.count(JobFilter(state="ready")) == [StateCount(JobState.READY, 2, False)]


def test_a_worker_finds_no_jobs(scene: Scene) -> None:
    worker = scene.as_role("worker").jobs
    for call in (worker.find, worker.count):
        with pytest.raises(SchemaForbidden):
            call()


def test_a_tenant_finds_its_own_jobs(scene: Scene) -> None:
    labels: dict[str, Any] = {"tags": ["t"], "correlation_id": "c"}
    mine = scene.calls.enqueue(tenant="a", **labels).job_id
    other = scene.calls.enqueue(tenant="b", **labels).job_id
    narrowed = scene.as_role("operator", tenant="a").jobs
    filters: list[dict[str, Any]] = [
        {},
        {"tag": "t"},
        {"correlation_id": "c"},
        {"job_ids": [mine, other]},
    ]
    for fields in filters:
        assert [job.id for job in narrowed.find(JobFilter(**fields)).jobs] == [mine]
        [count] = narrowed.count(JobFilter(state="ready", **fields))
        assert count.jobs == 1
    assert narrowed.find(JobFilter(tenant="b")).jobs == []


async def _async_ids(scene: Scene) -> list[Any]:
    async with AsyncOperator(dsn_as(scene.database, "operator")) as operator:
        return [job.id async for job in operator.jobs.find_all()]


def test_the_same_works_asynchronously(scene: Scene) -> None:
    import asyncio  # noqa: PLC0415

    made = scene.calls.fill(3)
    assert asyncio.run(_async_ids(scene)) == sorted(made, reverse=True)


def test_labels_of_jobs_that_are_gone_are_swept(scene: Scene) -> None:
    scene.finish(3, tags=["old"])
    kept = scene.bury(1, tags=["old"])
    scene.database.move_time("40 days")
    scene.calls.connection.execute("select trunkline.maintain_partitions()")
    fresh = scene.calls.enqueue(tags=["old"]).job_id
    run = scene.calls.connection.execute("select rows from trunkline.run_duty('sweep_labels')")
    assert run.fetchone() == (3,)
    assert ids(scene, tag="old") == [fresh, *kept]
    again = scene.calls.connection.execute("select rows from trunkline.run_duty('sweep_labels')")
    assert again.fetchone() == (0,)

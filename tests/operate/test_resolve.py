"""The start of a job id stands for the job, whichever table the job is in."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from tests.operate.conftest import Scene
from trunkline.db.translate import translated
from trunkline.errors import InvalidArgument, LimitOutOfRange, SchemaForbidden, UnknownJob
from trunkline.operate import JobFilter, SyncOperator

# A place in a full id behind the time and the random bits that tell jobs of a millisecond apart.
UNIQUE = 30
NOBODY = "00000000-0000-7000-8000-000000000000"


def jobs_in_each_state(scene: Scene, **fields: Any) -> list[UUID]:
    scheduled = scene.calls.enqueue(delay="1 hour", **fields).job_id
    cancelled = scene.calls.enqueue(**fields).job_id
    scene.operator.jobs.cancel(cancelled)
    running = scene.calls.enqueue(queue="running", **fields).job_id
    scene.calls.claim("w", 1, queues=["running"])
    ready = scene.calls.enqueue(**fields).job_id
    made = [scheduled, cancelled, running, ready, *scene.finish(**fields), *scene.bury(**fields)]
    states = {scene.operator.jobs.get(job).state.value for job in made}
    assert states == {"scheduled", "cancelled", "running", "ready", "completed", "dead"}
    return made


def begin_a_prefix(scene: Scene) -> None:
    """Move the time so that ids of the next minute have the same first 8 digits."""
    row = scene.calls.connection.execute(
        "select extract(epoch from trunkline.clock())::float8"
    ).fetchone()
    assert row is not None
    scene.database.move_time(f"{65.536 - row[0] % 65.536} seconds")


def resolved(scene: Scene, *arguments: Any) -> list[UUID]:
    places = ", ".join(["%s"] * len(arguments))
    with translated():
        rows = scene.calls.connection.execute(
            f"select * from trunkline.resolve_job({places})".encode(), arguments
        )
    return [row[0] for row in rows]


def test_a_job_of_each_state_is_resolved_with_and_without_dashes(scene: Scene) -> None:
    for job in jobs_in_each_state(scene):
        resolve = scene.operator.jobs.resolve
        assert resolve(str(job)[:UNIQUE]) == job
        assert resolve(job.hex[:UNIQUE]) == job
        assert resolve(job.hex[:UNIQUE].upper()) == job


def test_ids_that_begin_alike_are_returned_newest_first_and_bounded(scene: Scene) -> None:
    begin_a_prefix(scene)
    made = sorted(jobs_in_each_state(scene), reverse=True)
    assert resolved(scene, made[0].hex[:8]) == made
    for limit in range(1, len(made)):
        assert resolved(scene, made[0].hex[:8], limit) == made[:limit]
    assert resolved(scene, made[2].hex) == [made[2]]
    assert resolved(scene, "f" * 8) == []


def test_finished_jobs_of_earlier_days_are_resolved(scene: Scene) -> None:
    [old] = scene.finish()
    scene.database.move_time("3 days")
    scene.calls.connection.execute("select trunkline.maintain_partitions()")
    [new] = scene.finish()
    assert resolved(scene, old.hex[:8])[-1] == old
    assert resolved(scene, new.hex[:8]) == [new]


def test_a_whole_id_is_returned_without_a_query() -> None:
    # Nobody listens there.
    with SyncOperator("host=127.0.0.1 port=1") as operator:
        assert operator.jobs.resolve(NOBODY) == UUID(NOBODY)
        assert operator.jobs.resolve(UUID(NOBODY)) == UUID(NOBODY)
        assert operator.jobs.resolve(UUID(NOBODY).hex) == UUID(NOBODY)


def test_no_job_with_the_prefix_is_an_unknown_job(scene: Scene) -> None:
    with pytest.raises(UnknownJob) as refused:
        scene.operator.jobs.resolve("00000000")
    assert refused.value.detail["job"] == "00000000"
    assert refused.value.detail["server"]


def test_several_jobs_with_the_prefix_are_listed(scene: Scene) -> None:
    made = sorted(scene.calls.fill(8), reverse=True)
    # Ids of a batch differ at their ends.
    prefix = made[0].hex[:12]
    assert {job.hex[:12] for job in made} == {prefix}
    with pytest.raises(InvalidArgument) as refused:
        scene.operator.jobs.resolve(prefix)
    shown = str(refused.value)
    assert [str(job) in shown for job in made] == [True] * 5 + [False] * 3
    assert "more digits" in refused.value.hint


@pytest.mark.parametrize(
    "text", ["", "0193", "0193abc", "0193-abc", "0193abcg", "-" * 12, "0" * 33, "9" * 3000, "٣" * 9]
)
def test_what_is_no_prefix_is_refused(scene: Scene, text: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        scene.operator.jobs.resolve(text)
    assert "8 hexadecimal digits" in refused.value.hint
    with pytest.raises(InvalidArgument) as refused:
        resolved(scene, text)
    assert "8 or more hexadecimal digits" in refused.value.detail["must_be"]


def test_bad_arguments_of_the_function_are_refused(scene: Scene) -> None:
    with pytest.raises(InvalidArgument):
        resolved(scene, None)
    for limit in (0, 1001, None):
        with pytest.raises(LimitOutOfRange):
            resolved(scene, "0193abcd", limit)


@pytest.mark.parametrize("role", ["operator", "producer", "reader"])
def test_these_roles_resolve_ids(scene: Scene, role: str) -> None:
    job = scene.calls.enqueue().job_id
    assert scene.as_role(role).jobs.resolve(str(job)[:UNIQUE]) == job


def test_a_worker_resolves_no_ids(scene: Scene) -> None:
    with pytest.raises(SchemaForbidden):
        scene.as_role("worker").jobs.resolve("0193abcd")


def test_a_tenant_resolves_its_own_ids(scene: Scene) -> None:
    mine = jobs_in_each_state(scene, tenant="a")
    narrowed = scene.as_role("operator", tenant="a").jobs
    for other in jobs_in_each_state(scene, tenant="b"):
        with pytest.raises(UnknownJob):
            narrowed.resolve(str(other)[:UNIQUE])
    for job in mine:
        assert narrowed.resolve(str(job)[:UNIQUE]) == job


def test_a_tenant_among_very_many_jobs_needs_a_longer_prefix(scene: Scene) -> None:
    """Others' jobs are skipped, and how many of them a call reads is bounded."""
    begin_a_prefix(scene)
    [mine] = scene.calls.fill(1, tenant="a")
    for _ in range(19):
        scene.calls.fill(1000, tenant="b")
    scene.calls.fill(999, tenant="b")
    narrowed = scene.as_role("operator", tenant="a").jobs
    # One of 20,000 might not be the only one.
    with pytest.raises(InvalidArgument) as refused:
        narrowed.resolve(mine.hex[:8])
    assert refused.value.detail["must_be"] == "longer"
    assert narrowed.resolve(mine.hex[:UNIQUE]) == mine
    [other] = scene.operator.jobs.find(JobFilter(tenant="b"), limit=1).jobs
    scene.operator.jobs.cancel(other.id)
    assert narrowed.resolve(mine.hex[:8]) == mine

"""Many jobs are changed in bounded batches that can be stopped, continued and previewed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest

from tests.operate.conftest import Scene
from trunkline.errors import (
    EmptyFilter,
    InvalidFilter,
    LimitOutOfRange,
    PriorityOutOfRange,
    SchemaForbidden,
)
from trunkline.model import JobState
from trunkline.operate import BulkProgress, JobFilter, SyncOperator

Verb = Callable[..., Iterator[BulkProgress]]
VERBS = ("acknowledge", "cancel", "discard", "reprioritise", "retry")


def verbs(operator: SyncOperator) -> dict[str, Verb]:
    jobs = operator.jobs
    return {
        "cancel": jobs.cancel_matching,
        "retry": jobs.retry_matching,
        "discard": jobs.discard_matching,
        "acknowledge": operator.dead.acknowledge_matching,
        "reprioritise": lambda given, **more: jobs.reprioritise_matching(given, 7, **more),
    }


def last(progress: Iterator[BulkProgress]) -> BulkProgress:
    *_, end = progress
    assert end.cursor is None
    return end


def events(scene: Scene, kind: str) -> list[tuple[Any, ...]]:
    return scene.calls.connection.execute(
        "select to_state, detail from trunkline.events where kind = %s", (kind,)
    ).fetchall()


def test_waiting_jobs_are_cancelled_and_running_ones_asked(scene: Scene) -> None:
    scene.calls.fill(5, tags=["x"])
    scene.calls.claim("w", 2)
    scene.calls.fill(3, tags=["x"], delay="1 hour")
    other = scene.calls.fill(1)
    scene.finish(1, tags=["x"])
    ear = scene.database.connect("trunkline_worker")
    ear.execute("listen trunkline_cancel")
    end = last(scene.operator.jobs.cancel_matching(JobFilter(tag="x"), reason="recalled"))
    assert (end.jobs, end.outcomes) == (8, {"cancelled": 6, "requested": 2})
    heard = [note.payload for note in ear.notifies(timeout=10, stop_after=2)]
    running = scene.operator.jobs.find(JobFilter(state="running")).jobs
    assert set(heard) == {str(job.id) for job in running}
    assert {job.reason for job in running} == {"recalled"}
    assert scene.states() == {"cancelled": 6, "running": 2, "ready": 1, "completed": 1}
    assert [job.id for job in scene.operator.jobs.find(JobFilter(state="ready")).jobs] == other
    assert sorted(detail["from"] for _, detail in events(scene, "cancelled")) == (
        ["ready"] * 3 + ["scheduled"] * 3
    )
    assert len(events(scene, "cancel_requested")) == 2
    # Once more: those that run were asked before.
    again = last(scene.operator.jobs.cancel_matching(JobFilter(tag="x")))
    assert (again.jobs, again.outcomes) == (2, {"requested": 2})
    assert len(events(scene, "cancel_requested")) == 2


def test_a_unique_key_is_free_after_a_bulk_cancel(scene: Scene) -> None:
    first = scene.calls.enqueue(unique_key="k").job_id
    last(scene.operator.jobs.cancel_matching(JobFilter(unique_key="k")))
    second = scene.calls.enqueue(unique_key="k")
    assert (second.created, second.job_id != first) == (True, True)


def test_the_work_is_done_in_batches_that_can_be_stopped_and_continued(scene: Scene) -> None:
    scene.calls.fill(25)
    seen = []
    for progress in scene.operator.jobs.cancel_matching(JobFilter(task="work"), batch=10):
        seen.append(progress)
        if len(seen) == 2:
            break
    assert [progress.jobs for progress in seen] == [10, 20]
    assert scene.states() == {"cancelled": 20, "ready": 5}
    # A job that came meanwhile is newer than the cursor and stays.
    scene.calls.fill(1)
    cursor = seen[-1].cursor
    rest = last(
        scene.operator.jobs.cancel_matching(JobFilter(task="work"), batch=10, cursor=cursor)
    )
    assert rest.jobs == 5
    assert scene.states() == {"cancelled": 25, "ready": 1}


def test_each_batch_leaves_one_line_in_the_log(scene: Scene) -> None:
    scene.calls.fill(25)
    last(scene.operator.jobs.cancel_matching(JobFilter(task="work"), batch=10, reason="incident 7"))
    last(scene.operator.jobs.cancel_matching(JobFilter(task="work")))
    found = scene.operator.log.list()[::-1]
    assert [(line.action, line.kind, line.actor) for line in found] == [
        ("cancel_jobs", "jobs", "ann")
    ] * 3
    assert found[0].before == {"filter": {"task": "work"}}
    assert [line.after for line in found] == [
        {"jobs": number, "outcomes": {"cancelled": number}} for number in (10, 10, 5)
    ]
    assert {line.reason for line in found} == {"incident 7"}


def test_dead_letters_are_replayed_with_all_that_a_single_retry_does(scene: Scene) -> None:
    dead = scene.bury(3, priority=4)
    ear = scene.database.connect("trunkline_worker")
    ear.execute("select trunkline.register_worker('idle')")
    ear.execute("listen trunkline_wake")
    ear.execute("select trunkline.sleep('idle', array['burying'])")
    end = last(scene.operator.jobs.retry_matching(JobFilter(task="work")))
    assert end.outcomes == {"replayed": 3}
    assert sorted(end.job_ids) == sorted(dead)
    assert [note.payload for note in ear.notifies(timeout=10, stop_after=1)] == ["burying"]
    claimed = scene.calls.claim("w2", 10, queues=["burying"])
    # The oldest goes first, with its next attempt and no failures.
    assert claimed.jobs == sorted(dead)
    assert {(row.attempt, row.failures, row.priority) for row in claimed.rows} == {(2, 0, 4)}
    assert [state for state, _ in events(scene, "replayed")] == ["ready"] * 3


def test_a_held_unique_key_keeps_a_dead_letter_where_it_is(scene: Scene) -> None:
    [first] = scene.bury(1, unique_key="k")
    [second] = scene.bury(1, unique_key="k")
    [held] = scene.bury(1, unique_key="other")
    scene.calls.enqueue(unique_key="other")
    end = last(scene.operator.jobs.retry_matching(JobFilter(queue="burying")))
    # Of two dead letters with one key the newer one is replayed.
    assert end.outcomes == {"replayed": 1, "unique_key_held": 2}
    assert end.job_ids == [second]
    dead = scene.operator.jobs.find(JobFilter(state="dead")).jobs
    assert [job.id for job in dead] == [held, first]
    assert not scene.calls.enqueue(unique_key="k").created


def test_limited_dead_letters_wait_for_their_bucket_again(scene: Scene) -> None:
    scene.calls.connection.execute("select trunkline.set_limit('api', '{\"concurrency\": 1}')")
    scene.calls.register("limited", limits=["api"])
    for _ in range(2):
        scene.bury(1, task="limited")
    end = last(scene.operator.jobs.retry_matching(JobFilter(task="limited")))
    assert end.outcomes == {"replayed": 2}
    assert len(scene.calls.claim("w", 10, queues=["burying"]).jobs) == 1


def test_finished_jobs_are_run_again_only_if_their_state_is_named(scene: Scene) -> None:
    done = scene.finish(2, tags=["x"])
    assert last(scene.operator.jobs.retry_matching(JobFilter(tag="x"))).jobs == 0
    end = last(scene.operator.jobs.retry_matching(JobFilter(tag="x", state="completed")))
    assert end.outcomes == {"retried": 2}
    made = scene.operator.jobs.find(JobFilter(state="ready")).jobs
    assert {job.retry_of for job in made} == set(done)
    assert sorted(end.job_ids) == sorted(job.id for job in made)
    # A refusal of one job is an outcome and not the end of the batch.
    scene.calls.connection.execute("select trunkline.limit_queue('finishing', 2)")
    scene.finish(0)
    more = last(scene.operator.jobs.retry_matching(JobFilter(job_ids=done, state="completed")))
    assert more.outcomes == {"retried": 2}
    scene.calls.connection.execute("select trunkline.pause_queue('finishing', null, true)")
    last(scene.operator.jobs.cancel_matching(JobFilter(tag="x")))
    refused = last(scene.operator.jobs.retry_matching(JobFilter(job_ids=done, state="completed")))
    assert refused.outcomes == {"queue_paused": 2}


def test_priorities_are_changed_for_waiting_jobs(scene: Scene) -> None:
    first = scene.calls.fill(3)
    later = scene.calls.fill(1, delay="1 hour")
    same = scene.calls.fill(1, priority=7)
    end = last(scene.operator.jobs.reprioritise_matching(JobFilter(task="work"), 7))
    assert end.outcomes == {"reprioritised": 4, "unchanged": 1}
    assert scene.calls.claim("w", 10).jobs == same + first
    [job] = scene.operator.jobs.find(JobFilter(job_ids=later)).jobs
    assert (job.state, job.priority) == ("scheduled", 7)
    assert [detail for _, detail in events(scene, "reprioritised")] == [{"from": 0, "to": 7}] * 4


def test_dead_letters_are_discarded_with_their_bodies(scene: Scene) -> None:
    scene.bury(2, payload={"text": "x" * 5000})
    kept = scene.calls.fill(1)
    end = last(scene.operator.jobs.discard_matching(JobFilter(task="work"), reason="obsolete"))
    assert end.outcomes == {"discarded": 2}
    assert scene.states() == {"ready": 1}
    assert [detail["reason"] for _, detail in events(scene, "discarded")] == ["obsolete"] * 2
    assert scene.operator.jobs.get(kept[0]).state is JobState.READY


def test_dead_letters_are_acknowledged_once(scene: Scene) -> None:
    [old, *new] = scene.bury(3)
    waiting = scene.calls.fill(1)
    scene.operator.dead.acknowledge(old)
    before = seen(scene)
    acknowledge = scene.operator.dead.acknowledge_matching
    end = last(acknowledge(JobFilter(task="work"), reason="known"))
    assert end.outcomes == {"acknowledged": 2, "unchanged": 1}
    assert sorted(end.job_ids) == sorted(new)
    after = seen(scene)
    assert after[old] == before[old]
    assert {by for _, by in after.values()} == {before[old][1]}
    assert None not in {at for at, _ in after.values()}
    assert [state for state, _ in events(scene, "acknowledged")] == ["dead"] * 3
    assert scene.operator.jobs.get(waiting[0]).state is JobState.READY
    [line, _] = scene.operator.log.list()
    assert (line.action, line.kind, line.reason) == ("acknowledge_jobs", "jobs", "known")
    # Those that wait for a person are selected by a field of the filter.
    assert last(acknowledge(JobFilter(acknowledged=False))).jobs == 0
    assert last(acknowledge(JobFilter(task="work"))).outcomes == {"unchanged": 3}
    assert len(events(scene, "acknowledged")) == 3


def seen(scene: Scene) -> dict[UUID, tuple[Any, Any]]:
    rows = scene.calls.connection.execute(
        "select job_id, acknowledged_at, acknowledged_by from trunkline.dead_letters"
    )
    return {job: (at, by) for job, at, by in rows}


def test_a_preview_counts_and_changes_nothing(scene: Scene) -> None:
    scene.bury(3)
    done = scene.finish(2)
    waiting = scene.calls.fill(15)
    before = scene.states()
    jobs = scene.operator.jobs
    counts, sample = jobs.preview("cancel", JobFilter(task="work"))
    assert {count.state: count.jobs for count in counts if count.jobs} == {JobState.READY: 15}
    assert [job.id for job in sample] == sorted(waiting, reverse=True)[:10]
    for action in ("acknowledge", "discard"):
        assert [count.jobs for count in jobs.preview(action, JobFilter(task="work")).counts] == [3]
    retried = jobs.preview("retry", JobFilter(task="work", state=["completed", "ready"]))
    assert [job.id for job in retried.sample] == sorted(done, reverse=True)
    assert jobs.preview("discard", JobFilter(state="ready")).sample == []
    assert scene.states() == before
    assert scene.operator.log.list() == []


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("given", [JobFilter(), JobFilter(state=["ready", "dead"])])
def test_a_filter_that_names_nothing_is_refused_unless_all_are_meant(
    scene: Scene, verb: str, given: JobFilter
) -> None:
    scene.calls.fill(1)
    scene.bury(1)
    before = scene.states()
    call = verbs(scene.operator)[verb]
    with pytest.raises(EmptyFilter):
        last(call(given))
    assert scene.states() == before
    assert last(call(given, all_jobs=True)).jobs == 1


@pytest.mark.parametrize("verb", VERBS)
def test_bad_arguments_are_refused(scene: Scene, verb: str) -> None:
    call = verbs(scene.operator)[verb]
    for batch in (0, 10_001):
        with pytest.raises(LimitOutOfRange):
            last(call(JobFilter(task="work"), batch=batch))
    with pytest.raises(InvalidFilter):
        last(call(JobFilter(task="")))
    with pytest.raises(PriorityOutOfRange):
        last(scene.operator.jobs.reprioritise_matching(JobFilter(task="work"), 50))


def test_a_filter_that_matches_nothing_ends_at_once(scene: Scene) -> None:
    for call in verbs(scene.operator).values():
        assert [(p.jobs, p.outcomes, p.cursor) for p in call(JobFilter(task="nobody"))] == [
            (0, {}, None)
        ]
    assert scene.operator.log.list() == []


@pytest.mark.parametrize("role", ["producer", "worker", "reader"])
@pytest.mark.parametrize("verb", VERBS)
def test_only_an_operator_changes_many_jobs(scene: Scene, role: str, verb: str) -> None:
    with pytest.raises(SchemaForbidden):
        last(verbs(scene.as_role(role))[verb](JobFilter(task="work")))


@pytest.mark.parametrize("verb", VERBS)
def test_a_tenant_changes_its_own_jobs(scene: Scene, verb: str) -> None:
    for tenant in "ab":
        scene.calls.fill(2, tenant=tenant)
        scene.bury(2, tenant=tenant)
    operator = scene.as_role("operator", tenant="a")
    assert last(verbs(operator)[verb](JobFilter(task="work"))).jobs == 2
    assert last(verbs(operator)[verb](JobFilter(), all_jobs=True)).jobs <= 2
    others = scene.operator.jobs.find(JobFilter(tenant="b")).jobs
    assert sorted(job.state for job in others) == ["dead", "dead", "ready", "ready"]
    assert {job.priority for job in others} == {0}
    # The line of the log belongs to the tenant.
    assert {line.tenant for line in scene.operator.log.list()} == {"a"}


def test_thousands_of_dead_letters_are_replayed_set_wise(scene: Scene) -> None:
    """A batch of 1,000 takes a bounded number of statements, so the calls are counted."""
    scene.bury(3000)
    batches = list(scene.operator.jobs.retry_matching(JobFilter(queue="burying")))
    assert [progress.jobs for progress in batches] == [1000, 2000, 3000, 3000]
    assert batches[-1].outcomes == {"replayed": 3000}
    assert scene.states() == {"ready": 3000}

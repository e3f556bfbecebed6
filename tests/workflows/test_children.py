"""Child jobs are a workflow of the job that waits for them: what they inherit, how they stop."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from psycopg.types.json import Jsonb

from tests.support.calls import Attempt
from tests.workflows.flow import Flow, job


def begin(flow: Flow, attempt: Attempt, *steps: dict[str, Any]) -> str:
    """Start child jobs for an attempt, or ask what became of them; return the outcome."""
    outcome: str = flow.worker.value(
        "select outcome from trunkline.begin_jobs('w', %s, %s, 1, '#1', %s)",
        attempt.job,
        attempt.number,
        Jsonb(list(steps)),
    )
    return outcome


def child_of(flow: Flow, parent: UUID) -> UUID:
    workflow: UUID = flow.operator.value(
        "select workflow_id from trunkline.workflows where parent_job = %s"
        " order by workflow_id desc limit 1",
        parent,
    )
    return workflow


def shared(flow: Flow, workflow: UUID) -> set[tuple[Any, ...]]:
    """Return what the jobs of a workflow have in common with it."""
    return set(
        flow.operator.connection.execute(
            "select tenant, priority, correlation_id from trunkline.jobs where workflow_id = %s",
            (workflow,),
        ).fetchall()
    )


def test_maps_take_tenant_and_priority_of_their_workflow(flow: Flow) -> None:
    started = flow.start(
        [job("a"), job("m", map="a", payload={"n": {"$item": True}}), job("last", "m")],
        tenant="acme",
        priority=7,
        correlation_id="c",
    )
    assert flow.run(results={"a": [1, 2, 3]}) == ["a", "m/0", "m/1", "m/2", "last"]
    assert shared(flow, started.workflow_id) == {("acme", 7, "c")}


def test_children_and_their_maps_take_tenant_and_priority_of_the_parent(flow: Flow) -> None:
    parent = flow.producer.enqueue("work", tenant="acme", priority=7, correlation_id="c")
    [attempt] = flow.claim().attempts
    many = [job("a", items=[{}, {}]), job("m", map="a"), job("own", "m", priority=9)]
    assert begin(flow, attempt, *many) == "wait"
    flow.worker.batch("suspend", "w", [attempt])
    child = child_of(flow, parent.job_id)
    done: list[str] = []
    # The parent is resumed by the end of its children.
    while (taken := flow.take(1)) and parent.job_id not in {one.job for one in taken.values()}:
        done += taken
        flow.complete(*taken.values())
        flow.expand()
    assert done == ["a/0", "a/1", "m/0", "m/1", "own"]
    assert shared(flow, child) == {("acme", 7, "c"), ("acme", 9, "c")}
    assert flow.workflow(child).tenant == "acme"


@pytest.mark.parametrize("reason", ["parent ended", "enough"])
def test_children_that_a_person_cancelled_are_not_started_again(flow: Flow, reason: str) -> None:
    parent = flow.producer.enqueue("work").job_id
    [attempt] = flow.claim().attempts
    assert begin(flow, attempt, job("a", delay="1 hour")) == "wait"
    flow.worker.batch("suspend", "w", [attempt])
    child = child_of(flow, parent)
    assert flow.cancel(child, reason) == "cancelled"
    [again] = flow.claim().attempts
    assert begin(flow, again, job("a", delay="1 hour")) == "failed"
    assert child_of(flow, parent) == child


def test_children_that_stopped_with_their_parent_start_again_with_it(flow: Flow) -> None:
    parent = flow.producer.enqueue("work").job_id
    [attempt] = flow.claim().attempts
    assert begin(flow, attempt, job("a", delay="1 hour")) == "wait"
    flow.fail(attempt)
    flow.advance()
    child = child_of(flow, parent)
    assert flow.state(child) == "cancelled"
    flow.operator.change("retry", parent)
    [again] = flow.claim().attempts
    assert begin(flow, again, job("a", delay="1 hour")) == "wait"
    assert child_of(flow, parent) != child

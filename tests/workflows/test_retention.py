"""What a workflow still needs outlives the partition of its jobs; a rerun names what is gone."""

from __future__ import annotations

import pytest

from tests.workflows.flow import Flow, job, refusal_of

_LARGE = {"text": "x" * 5000}


def age(flow: Flow, by: str) -> None:
    """Let time pass, and the duty drop what is past retention: one partition of a table a run."""
    flow.database.move_time(by)
    for _ in range(8):
        flow.worker.value("select trunkline.maintain_partitions()")


def rerun(flow: Flow, workflow: object, step: str | None = None) -> object:
    return flow.operator.value(
        "select workflow_id from trunkline.rerun_workflow(%s, %s)", workflow, step
    )


@pytest.mark.parametrize("acknowledged", [False, True])
def test_a_retry_after_the_retention_runs_what_was_cancelled(
    flow: Flow, acknowledged: bool
) -> None:
    started = flow.start(
        [
            job("a"),
            job("first"),
            job("b", "first", payload=_LARGE),
            job("many", "b", items=[{"payload": _LARGE}, {"payload": {"n": 2}}]),
        ]
    )
    flow.run(fail=["first"])
    gone = flow.id_of(started.workflow_id, "a")
    if acknowledged:
        flow.database.move_time("10 days")
        flow.operator.change("acknowledge", flow.id_of(started.workflow_id, "first"))
        age(flow, "23 days")
    else:
        age(flow, "33 days")
    known = "select count(*) from trunkline.jobs where job_id = %s"
    assert flow.operator.value(known, gone) == 0
    assert flow.jobs(started.workflow_id) == {
        "first": "dead",
        "b": "cancelled",
        "many/0": "cancelled",
        "many/1": "cancelled",
    }
    flow.retry(started.workflow_id)
    taken = flow.take()
    assert [*taken] == ["first"]
    flow.complete(*taken.values())
    claim = flow.claim(1)
    assert [row.payload for row in claim.rows] == [_LARGE]
    flow.complete(*claim.attempts)
    assert flow.run() == ["many/0", "many/1"]
    assert flow.state(started.workflow_id) == "completed"


def test_cancelled_jobs_go_with_a_workflow_that_nothing_can_continue(flow: Flow) -> None:
    started = flow.start([job("a"), job("b", "a")])
    flow.run(fail=["a"])
    flow.operator.change("discard", flow.id_of(started.workflow_id, "a"))
    age(flow, "33 days")
    assert flow.jobs(started.workflow_id) == {}


def test_cancelled_jobs_stay_for_months_and_then_run(flow: Flow) -> None:
    started = flow.start([job("a"), job("b", "a")])
    flow.run(fail=["a"])
    for _ in range(3):
        age(flow, "33 days")
    flow.retry(started.workflow_id)
    assert flow.run() == ["a", "b"]
    assert flow.state(started.workflow_id) == "completed"


def test_a_locked_workflow_keeps_the_partition_until_the_next_run(flow: Flow) -> None:
    started = flow.start([job("a"), job("b", "a")])
    flow.run(fail=["a"])
    other = flow.database.connect("trunkline_operator", autocommit=False)
    other.execute("select trunkline.retry_workflow(%s)", (started.workflow_id,))
    age(flow, "33 days")
    other.rollback()
    assert flow.jobs(started.workflow_id) == {"a": "dead", "b": "cancelled"}
    age(flow, "0 days")
    flow.retry(started.workflow_id)
    assert flow.run() == ["a", "b"]


def test_a_rerun_without_the_request_of_a_discarded_job_is_refused(flow: Flow) -> None:
    started = flow.start([job("first"), job("second", "first")])
    flow.run(fail=["first"])
    flow.operator.change("discard", flow.id_of(started.workflow_id, "first"))
    found = refusal_of(lambda: rerun(flow, started.workflow_id))
    assert found == {
        "sqlstate": "TL046",
        "code": "workflow_job_gone",
        "workflow": str(started.workflow_id),
        "step": "first",
        "missing": "request",
        "jobs": 1,
    }
    again = "select count(*) from trunkline.workflows where rerun_of is not null"
    assert flow.operator.value(again) == 0


def test_a_rerun_names_the_set_of_which_some_jobs_were_discarded(flow: Flow) -> None:
    started = flow.start([job("a"), job("many", items=[{}, {}, {}])])
    flow.run(fail=["many/0", "many/2"])
    flow.operator.change("discard", flow.id_of(started.workflow_id, "many", 2))
    found = refusal_of(lambda: rerun(flow, started.workflow_id))
    assert (found["step"], found["missing"], found["jobs"]) == ("many", "request", 1)


def test_a_rerun_of_completed_jobs_past_retention_is_refused(flow: Flow) -> None:
    started = flow.start(
        [job("a"), job("b", payload={"a": {"$result": "a"}}), job("c", "b", payload=_LARGE)]
    )
    flow.run(results={"a": 41}, fail=["b"])
    age(flow, "33 days")
    found = refusal_of(lambda: rerun(flow, started.workflow_id, "a"))
    assert (found["step"], found["missing"]) == ("a", "request")
    # What has not completed still runs, with the result of what has.
    again = rerun(flow, started.workflow_id)
    taken = flow.take()
    assert [*taken] == ["b"]
    result = flow.worker.value(
        "select result from trunkline.dependency_results('w', %s, 1, 'a')", taken["b"].job
    )
    assert result == 41
    flow.complete(taken["b"])
    assert flow.run() == ["c"]
    assert flow.state(again) == "completed"  # type: ignore[arg-type]


def test_a_rerun_that_would_read_a_result_past_retention_is_refused(flow: Flow) -> None:
    started = flow.start(
        [job("a"), job("before"), job("b", "before", payload={"a": {"$result": "a"}})]
    )
    flow.complete(*flow.take().values(), results=[1, 2])
    flow.database.move_time("20 days")
    assert flow.run() == ["b"]
    age(flow, "13 days")
    found = refusal_of(lambda: rerun(flow, started.workflow_id, "b"))
    assert (found["step"], found["missing"], found["jobs"]) == ("a", "result", 1)

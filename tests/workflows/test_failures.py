"""A failed branch cancels what waits for it; the rest continues, and the workflow ends."""

from __future__ import annotations

from tests.support.internals import workflows
from tests.workflows.flow import Flow, job


def test_ta_42_a_dead_job_cancels_its_dependants_and_the_rest_continues(flow: Flow) -> None:
    """TA-42, TA-S06: dependants are cancelled, independent steps go on, the end is failed."""
    started = flow.start(
        [job("text"), job("pdf", "text"), job("zip", "pdf"), job("other"), job("audio", "other")]
    )
    assert flow.run(fail=["text"]) == ["text", "other", "audio"]
    assert flow.jobs(started.workflow_id) == {
        "text": "dead",
        "pdf": "cancelled",
        "zip": "cancelled",
        "other": "completed",
        "audio": "completed",
    }
    assert flow.steps(started.workflow_id) == {
        "text": "failed",
        "pdf": "cancelled",
        "zip": "cancelled",
        "other": "completed",
        "audio": "completed",
    }
    assert flow.state(started.workflow_id) == "failed"
    reason = flow.operator.value(
        "select reason from trunkline.jobs where job_id = %s",
        flow.id_of(started.workflow_id, "pdf"),
    )
    assert reason == "dependency"


def test_the_other_items_of_a_set_run_after_one_is_dead(flow: Flow) -> None:
    started = flow.start([job("many", items=[{}, {}, {}]), job("last", "many")])
    taken = flow.take()
    flow.fail(taken["many/1"])
    assert flow.jobs(started.workflow_id)["last"] == "cancelled"
    assert flow.state(started.workflow_id) == "running"
    flow.complete(taken["many/0"], taken["many/2"])
    assert flow.state(started.workflow_id) == "failed"


def test_a_cancelled_job_cancels_its_dependants(flow: Flow) -> None:
    started = flow.start([job("a"), job("b", "a"), job("c")])
    flow.producer.change("cancel", flow.id_of(started.workflow_id, "a"))
    assert flow.jobs(started.workflow_id) == {"a": "cancelled", "b": "cancelled", "c": "ready"}
    flow.run()
    assert flow.state(started.workflow_id) == "cancelled"


def test_a_blocked_job_can_be_cancelled_and_its_set_runs_without_it(flow: Flow) -> None:
    started = flow.start([job("a"), job("many", "a", items=[{}, {}]), job("last", "many")])
    flow.producer.change("cancel", flow.id_of(started.workflow_id, "many", 0))
    assert flow.steps(started.workflow_id)["many"] == "blocked"
    assert flow.run() == ["a", "many/1"]
    assert flow.jobs(started.workflow_id)["last"] == "cancelled"
    assert flow.state(started.workflow_id) == "cancelled"


def test_a_lost_job_that_dies_fails_the_workflow(flow: Flow) -> None:
    flow.producer.register("short", max_attempts=1, lease="1 second", hard_limit="1 second")
    started = flow.start([job("a", task="short"), job("b", "a")])
    flow.take()
    workflows.lapse_leases(flow.admin.connection)
    flow.worker.reclaim()
    assert flow.jobs(started.workflow_id) == {"a": "dead", "b": "cancelled"}
    assert flow.state(started.workflow_id) == "failed"


def test_a_job_that_expires_cancels_its_dependants(flow: Flow) -> None:
    started = flow.start(
        [
            job("a"),
            job("b", "a"),
            job("late", "a", expires_at="2999-01-01T00:00:00Z"),
            job("last", "late"),
        ]
    )
    workflows.expire_waiting(flow.admin.connection)
    flow.worker.run_duty("run_duty('expire')")
    assert flow.jobs(started.workflow_id)["last"] == "cancelled"
    assert flow.run() == ["a", "b"]
    assert flow.state(started.workflow_id) == "cancelled"


def test_discarding_a_dead_job_leaves_the_end_as_it_is(flow: Flow) -> None:
    started = flow.start([job("a"), job("b")])
    flow.run(fail=["a"])
    flow.operator.change("discard", flow.id_of(started.workflow_id, "a"))
    assert flow.state(started.workflow_id) == "failed"
    assert flow.advance() == 0

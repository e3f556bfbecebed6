"""A workflow ends once for each generation: callbacks, cancellation, deadlines, retries, reruns."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg
import pytest

from tests.support.internals import rows, workflows
from tests.workflows.flow import Flow, job, refusal_of

_CALLBACKS: dict[str, Any] = {
    f"on_{name}": {"task": "told", "payload": {"what": name, "workflow": {"$workflow": True}}}
    for name in ("completed", "failure", "cancel")
}


def _told(flow: Flow) -> list[tuple[str, dict[str, Any]]]:
    """Return what the callbacks were told, in their order."""
    found = flow.operator.connection.execute(
        "select payload from trunkline.jobs where task = 'told' order by job_id"
    ).fetchall()
    return [(payload["what"], payload["workflow"]) for (payload,) in found]


def test_each_end_has_its_callback(flow: Flow) -> None:
    flow.producer.register("told", queue="callbacks")
    steps = [job("a"), job("b", "a")]
    done = flow.start(steps, name="done", **_CALLBACKS)
    flow.run()
    failed = flow.start(steps, name="failed", **_CALLBACKS)
    flow.run(fail=["a"])
    cancelled = flow.start(steps, name="stopped", **_CALLBACKS)
    assert flow.cancel(cancelled.workflow_id, "enough") == "cancelled"
    told = _told(flow)
    assert [(what, flow_.get("state")) for what, flow_ in told] == [
        ("completed", "completed"),
        ("failure", "failed"),
        ("cancel", "cancelled"),
    ]
    assert [UUID(one["id"]) for _, one in told] == [
        done.workflow_id,
        failed.workflow_id,
        cancelled.workflow_id,
    ]
    assert told[1][1]["failed"] == [
        {
            "step": "a",
            "item": None,
            "job": str(flow.id_of(failed.workflow_id, "a")),
            "reason": "not_retryable",
        }
    ]
    assert told[2][1]["reason"] == "enough"
    assert {one["generation"] for _, one in told} == {1}


def test_the_callback_for_every_end_comes_once_in_each_generation(flow: Flow) -> None:
    flow.producer.register("told", queue="callbacks")
    payload = {"what": "end", "workflow": {"$workflow": True}}
    every: dict[str, Any] = {"on_end": {"task": "told", "payload": payload}}
    steps = [job("many", items=[{}, {}]), job("other")]
    flow.start(steps, kind="batch", **every)
    flow.run()
    failed = flow.start(steps, kind="batch", **every, **_CALLBACKS)
    flow.run(fail=["many/1"])
    flow.retry(failed.workflow_id)
    flow.run()
    flow.cancel(flow.start(steps, kind="batch", **every).workflow_id)
    told = _told(flow)
    # Both callbacks of an end may have the same millisecond in their ids.
    assert sorted((what, one["state"], one["generation"]) for what, one in told) == [
        ("completed", "completed", 2),
        ("end", "cancelled", 1),
        ("end", "completed", 1),
        ("end", "completed", 2),
        ("end", "failed", 1),
        ("failure", "failed", 1),
    ]
    again = flow.operator.value(
        "select workflow_id from trunkline.rerun_workflow(%s)", failed.workflow_id
    )
    flow.run()
    assert sorted((what, one["id"]) for what, one in _told(flow) if one["id"] == str(again)) == [
        ("completed", str(again)),
        ("end", str(again)),
    ]


def test_a_refused_callback_does_not_keep_back_the_one_for_every_end(flow: Flow) -> None:
    flow.producer.register("told", queue="callbacks")
    flow.producer.register("gone")
    started = flow.start([job("a")], on_completed={"task": "gone"}, on_end={"task": "told"})
    workflows.remove_task(flow.admin.connection, "gone")
    flow.run()
    assert flow.workflow(started.workflow_id).callback_error["code"] == "unknown_task"
    told = "select count(*) from trunkline.jobs where task = 'told'"
    assert flow.operator.value(told) == 1


def test_a_callback_that_is_refused_does_not_keep_the_workflow_from_ending(flow: Flow) -> None:
    flow.producer.register("told", queue="full")
    started = flow.start([job("a")], on_completed={"task": "told", "payload": {"workflow": 1}})
    flow.operator.connection.execute("select trunkline.set_setting('max_payload_bytes', '1024')")
    workflows.remove_task(flow.admin.connection, "told")
    flow.run()
    found = flow.workflow(started.workflow_id)
    assert (found.state, found.callback_error["code"]) == ("completed", "unknown_task")
    # The callback was enqueued as a document of one job, whose index says nothing.
    assert "index" not in found.callback_error


def test_a_callback_takes_tenant_correlation_and_priority_of_the_workflow(flow: Flow) -> None:
    flow.producer.register("told", queue="callbacks")
    options = {"task": "told", "max_attempts": 3, "tags": ["x"], "payload": None}
    shared: dict[str, Any] = {"tenant": "acme", "correlation_id": "c", "priority": 7}
    for own in ({}, {"priority": 3}):
        flow.start([job("a")], on_completed=options | own, **shared)
        flow.run()
    found = flow.operator.connection.execute(
        "select tenant, correlation_id, priority, max_attempts, tags, payload, queue"
        " from trunkline.jobs where task = 'told' order by job_id"
    ).fetchall()
    assert found == [
        ("acme", "c", 7, 3, ["x"], {}, "callbacks"),
        ("acme", "c", 3, 3, ["x"], {}, "callbacks"),
    ]


def test_ta_67_cancel_ends_waiting_jobs_and_asks_running_ones_to_stop(flow: Flow) -> None:
    """TA-67: waiting jobs are cancelled at once, running ones at their next heartbeat."""
    started = flow.start([job("a"), job("b"), job("c", "a", "b"), job("d", delay="1 hour")])
    taken = flow.take(1)
    assert flow.cancel(started.workflow_id, "enough") == "requested"
    assert flow.cancel(started.workflow_id) == "requested"
    assert flow.jobs(started.workflow_id) == {
        "a": "running",
        "b": "cancelled",
        "c": "cancelled",
        "d": "cancelled",
    }
    [verdict] = flow.worker.batch("heartbeat", "w", [*taken.values()])
    assert verdict.verdict == "cancel"
    flow.worker.batch("acknowledge_cancel", "w", [*taken.values()])
    found = flow.workflow(started.workflow_id)
    assert (found.state, found.reason) == ("cancelled", "enough")
    assert flow.cancel(started.workflow_id) == "ended"


def test_a_cancelled_workflow_whose_last_jobs_complete_is_complete(flow: Flow) -> None:
    started = flow.start([job("a")])
    taken = flow.take()
    assert flow.cancel(started.workflow_id) == "requested"
    flow.complete(*taken.values())
    assert flow.state(started.workflow_id) == "completed"


def test_a_deadline_stops_the_workflow_which_then_has_failed(flow: Flow) -> None:
    flow.producer.register("told", queue="callbacks")
    started = flow.start([job("a"), job("b", "a")], deadline="2 days", **_CALLBACKS)
    later = flow.start([job("a")], deadline="2999-01-01T00:00:00Z")
    assert flow.advance() == 0
    workflows.pass_deadline(flow.admin.connection, started.workflow_id)
    assert flow.advance() == 1
    found = flow.workflow(started.workflow_id)
    assert (found.state, found.reason) == ("failed", "deadline")
    assert [what for what, _ in _told(flow)] == ["failure"]
    assert flow.state(later.workflow_id) == "queued"


@pytest.mark.parametrize("reason", ["deadline", "parent ended"])
def test_the_reason_of_a_cancel_request_is_only_a_text(flow: Flow, reason: str) -> None:
    flow.producer.register("told", queue="callbacks")
    started = flow.start([job("a")], deadline="2 days", **_CALLBACKS)
    assert flow.cancel(started.workflow_id, reason) == "cancelled"
    found = flow.workflow(started.workflow_id)
    assert (found.state, found.reason) == ("cancelled", reason)
    assert [what for what, _ in _told(flow)] == ["cancel"]


def test_a_workflow_stopped_without_a_dead_job_is_rerun_and_not_retried(flow: Flow) -> None:
    late = flow.start([job("a", delay="1 hour")], deadline="2 days")
    workflows.pass_deadline(flow.admin.connection, late.workflow_id)
    flow.advance()
    stopped = flow.start([job("a", delay="1 hour")])
    flow.cancel(stopped.workflow_id)
    for started, state in ((late, "failed"), (stopped, "cancelled")):
        with pytest.raises(psycopg.DatabaseError) as refused:
            flow.retry(started.workflow_id)
        assert (refused.value.sqlstate, "rerun" in (refused.value.diag.message_hint or "")) == (
            "TL047",
            True,
        )
        assert flow.state(started.workflow_id) == state
        flow.operator.value("select trunkline.rerun_workflow(%s)", started.workflow_id)
    assert flow.run() == ["a", "a"]


def test_a_retried_job_reopens_its_cancelled_dependants(flow: Flow) -> None:
    flow.producer.register("told", queue="callbacks")
    started = flow.start(
        [job("a"), job("b", "a", unique_key="k"), job("c", "b"), job("d", "c", "e"), job("e")],
        unique_key="one",
        **_CALLBACKS,
    )
    before = flow.run(fail=["a", "e"])
    assert (before[:2], flow.state(started.workflow_id)) == (["a", "e"], "failed")
    ids = {name: flow.id_of(started.workflow_id, name) for name in "abcde"}
    flow.operator.change("retry", ids["a"])
    # d waits for e as well, which is still dead.
    assert flow.jobs(started.workflow_id) == {
        "a": "ready",
        "b": "blocked",
        "c": "blocked",
        "d": "cancelled",
        "e": "dead",
    }
    assert not flow.producer.enqueue("work", unique_key="k").created
    found = flow.workflow(started.workflow_id)
    assert (found.state, found.generation, found.ended_at) == ("running", 2, None)
    assert not flow.start([job("a")], unique_key="one").created
    assert flow.run() == ["a", "b", "c"]
    assert flow.state(started.workflow_id) == "failed"
    assert flow.retry(started.workflow_id) == 1
    assert flow.run() == ["e", "d"]
    assert flow.state(started.workflow_id) == "completed"
    assert {name: flow.id_of(started.workflow_id, name) for name in "abcde"} == ids
    assert [(what, one["generation"]) for what, one in _told(flow)] == [
        ("failure", 1),
        ("failure", 2),
        ("completed", 3),
    ]


def test_a_retry_while_the_workflow_is_live_opens_no_generation(flow: Flow) -> None:
    started = flow.start([job("a"), job("b", "a"), job("c")])
    taken = flow.take()
    flow.fail(taken["a"])
    assert flow.jobs(started.workflow_id)["b"] == "cancelled"
    assert flow.retry(started.workflow_id) == 1
    flow.run()
    flow.complete(taken["c"])
    found = flow.workflow(started.workflow_id)
    assert (found.state, found.generation) == ("completed", 1)


def test_retrying_by_filter_and_with_edits_reopens_too(flow: Flow) -> None:
    one = flow.start([job("a"), job("b", "a")])
    two = flow.start([job("a"), job("b", "a")])
    flow.run(fail=["a"])
    flow.operator.connection.execute(
        "select trunkline.retry_edited(%s, '{\"n\": 2}')", (flow.id_of(one.workflow_id, "a"),)
    )
    flow.operator.connection.execute('select trunkline.retry_jobs(\'{"task": "work"}\')')
    assert sorted(flow.run()) == ["a", "a", "b", "b"]
    assert flow.state(one.workflow_id) == flow.state(two.workflow_id) == "completed"


def test_a_workflow_without_dead_jobs_cannot_be_retried(flow: Flow) -> None:
    started = flow.start([job("a")])
    flow.run()
    found = refusal_of(lambda: flow.retry(started.workflow_id))
    assert (found["sqlstate"], found["state"]) == ("TL045", "completed")
    missing = UUID(int=1)
    assert refusal_of(lambda: flow.retry(missing))["sqlstate"] == "TL043"


def test_a_retry_is_refused_while_another_workflow_has_the_unique_key(flow: Flow) -> None:
    started = flow.start([job("a")], unique_key="k")
    flow.run(fail=["a"])
    other = flow.start([job("a")], unique_key="k")
    found = refusal_of(lambda: flow.retry(started.workflow_id))
    assert (found["sqlstate"], found["holder"]) == ("TL018", str(other.workflow_id))
    assert flow.jobs(started.workflow_id) == {"a": "dead"}


def test_a_rerun_from_a_step_keeps_the_results_before_it(flow: Flow) -> None:
    steps = [
        job("a"),
        job("many", items=[{"payload": {"n": 1}}, {"payload": {"n": 2}}]),
        job("b", payload={"a": {"$result": "a"}, "many": {"$results": "many"}}, max_attempts=7),
        job("c", "b"),
    ]
    first = flow.start(steps, tenant="acme", correlation_id="c")
    flow.run(results={"a": 41, "many/0": 1, "many/1": 2})
    again = flow.operator.value(
        "select workflow_id from trunkline.rerun_workflow(%s, 'b')", first.workflow_id
    )
    assert flow.steps(again) == {"a": "completed", "many": "completed", "b": "open", "c": "blocked"}
    taken = flow.take()
    assert [*taken] == ["b"]
    results = flow.worker.connection.execute(
        "select result from trunkline.dependency_results('w', %s, 1, 'many')", (taken["b"].job,)
    ).fetchall()
    assert results == [(1,), (2,)]
    flow.complete(*taken.values())
    assert flow.run() == ["c"]
    assert flow.state(again) == "completed"
    found = refusal_of(
        lambda: flow.operator.value("select trunkline.delete_workflow(%s)", first.workflow_id)
    )
    assert (found["sqlstate"], found["used_by"]) == ("TL045", str(again))


def test_a_rerun_without_a_step_runs_what_has_not_completed(flow: Flow) -> None:
    first = flow.start([job("a"), job("b", "a"), job("c", "b"), job("d")])
    assert (
        refusal_of(
            lambda: flow.operator.value("select trunkline.rerun_workflow(%s)", first.workflow_id)
        )["sqlstate"]
        == "TL045"
    )
    flow.run(fail=["b"])
    again = flow.operator.value(
        "select workflow_id from trunkline.rerun_workflow(%s)", first.workflow_id
    )
    assert flow.run() == ["b", "c"]
    assert (flow.state(first.workflow_id), flow.state(again)) == ("failed", "completed")
    assert (
        refusal_of(lambda: flow.operator.value("select trunkline.rerun_workflow(%s, 'z')", again))[
            "sqlstate"
        ]
        == "TL044"
    )


def test_ta_13_deleting_a_workflow_deletes_its_jobs(flow: Flow) -> None:
    """TA-13: jobs, bodies and steps go with the workflow; a live one cannot be deleted."""
    large = {"text": "x" * 5000}
    started = flow.start([job("a", payload=large), job("b", payload=large), job("c", "b")])
    assert (
        refusal_of(
            lambda: flow.operator.value("select trunkline.delete_workflow(%s)", started.workflow_id)
        )["sqlstate"]
        == "TL045"
    )
    flow.run(results={"a": large}, fail=["b"])
    flow.operator.value("select trunkline.delete_workflow(%s)", started.workflow_id)
    for name in ("workflows", "workflow_steps", "workflow_ends", "finished", "dead", "bodies"):
        assert rows.count(flow.admin.connection, name) == 0, name


def test_a_workflow_is_swept_after_its_retention_unless_a_job_is_dead(flow: Flow) -> None:
    done = flow.start([job("a")], idempotency_key="i")
    flow.run()
    failed = flow.start([job("a")])
    flow.run(fail=["a"])
    flow.start([job("a")])
    workflows.move_ends(flow.admin.connection, "29 days")
    assert flow.worker.value("select rows from trunkline.run_duty('sweep_workflows')") == 0
    workflows.move_ends(flow.admin.connection, "2 days")
    assert flow.worker.value("select rows from trunkline.run_duty('sweep_workflows')") == 1
    assert flow.workflow(done.workflow_id) is None
    assert flow.state(failed.workflow_id) == "failed"
    flow.operator.change("acknowledge", flow.id_of(failed.workflow_id, "a"))
    assert flow.worker.value("select rows from trunkline.run_duty('sweep_workflows')") == 1


def test_a_workflow_whose_jobs_are_gone_fails_the_health_check(flow: Flow) -> None:
    started = flow.start([job("a"), job("b", "a")])
    health = "select ok, detail -> 'stuck' from trunkline.health() where \"check\" = 'workflows'"
    workflows.drop_waiting_jobs(flow.admin.connection)
    workflows.move_starts(flow.admin.connection, "2 minutes")
    row = flow.operator.connection.execute(health.encode()).fetchone()
    assert row == (False, [str(started.workflow_id)])


def test_operator_actions_are_in_the_log(flow: Flow) -> None:
    started = flow.start([job("a")])
    flow.run(fail=["a"])
    flow.retry(started.workflow_id)
    flow.operator.value("select trunkline.cancel_workflow(%s, 'enough')", started.workflow_id)
    flow.operator.value("select trunkline.rerun_workflow(%s)", started.workflow_id)
    flow.run()
    [(again,)] = flow.operator.connection.execute(
        "select workflow_id from trunkline.workflows where rerun_of is not null"
    ).fetchall()
    flow.operator.value("select trunkline.delete_workflow(%s)", again)
    logged = flow.operator.connection.execute(
        "select action, object, reason from trunkline.operator_log where kind = 'workflow'"
        " order by log_id"
    ).fetchall()
    old = str(started.workflow_id)
    assert logged == [
        ("retry_workflow", old, None),
        ("cancel_workflow", old, "enough"),
        ("rerun_workflow", old, None),
        ("delete_workflow", str(again), None),
    ]

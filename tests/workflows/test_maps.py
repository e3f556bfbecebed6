"""A map gets its jobs when its source has completed; a job reads what it depends on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.internals import workflows
from tests.workflows.flow import Flow, job, refusal_of

_ITEM = {"$item": True}


def _payloads(flow: Flow, workflow: Any, step: str) -> list[dict[str, Any]]:
    found = flow.operator.connection.execute(
        "select j.payload from trunkline.jobs as j join trunkline.workflow_steps as s"
        "   on s.workflow_id = j.workflow_id and s.place = j.workflow_step"
        " where s.workflow_id = %s and s.name = %s order by j.workflow_item",
        (workflow, step),
    ).fetchall()
    return [payload for (payload,) in found]


def test_a_map_runs_one_job_for_each_element(flow: Flow) -> None:
    started = flow.start(
        [
            job("scan"),
            job("ocr", map="scan", payload={"page": _ITEM, "again": _ITEM, "lang": "de"}),
            job("join", payload={"pages": {"$results": "ocr"}}),
        ]
    )
    assert started.jobs == 2
    taken = flow.take()
    elements = ["p1", {"n": 2}, {"$result": "scan"}, None]
    flow.complete(*taken.values(), results=[elements])
    assert flow.steps(started.workflow_id) == {
        "scan": "completed",
        "ocr": "open",
        "join": "blocked",
    }
    assert flow.expand() == 4
    assert _payloads(flow, started.workflow_id, "ocr") == [
        {"page": one, "again": one, "lang": "de"}
        for one in ["p1", {"n": 2}, {"$value": {"$result": "scan"}}, None]
    ]
    assert flow.workflow(started.workflow_id).jobs == 6
    assert flow.run() == [*(f"ocr/{n}" for n in range(4)), "join"]
    assert flow.state(started.workflow_id) == "completed"


def test_a_map_over_no_elements_leads_on_at_once(flow: Flow) -> None:
    started = flow.start([job("scan"), job("ocr", map="scan"), job("join", "ocr")])
    assert flow.run(results={"scan": []}) == ["scan", "join"]
    assert flow.state(started.workflow_id) == "completed"


@pytest.mark.parametrize("result", [None, {"a": 1}, "text", 3])
def test_a_map_over_no_array_fails_and_cancels_what_waits(flow: Flow, result: Any) -> None:
    started = flow.start([job("scan"), job("ocr", map="scan"), job("join", "ocr")])
    assert flow.run(results={"scan": result}) == ["scan"]
    assert flow.jobs(started.workflow_id) == {"scan": "completed", "join": "cancelled"}
    reason = flow.operator.value(
        "select reason from trunkline.workflow_steps where workflow_id = %s and name = 'ocr'",
        started.workflow_id,
    )
    assert (reason, flow.state(started.workflow_id)) == ("map_not_array", "failed")


def test_a_map_with_too_many_elements_fails_until_the_setting_is_raised(flow: Flow) -> None:
    flow.operator.connection.execute("select trunkline.set_setting('max_workflow_jobs', '5')")
    started = flow.start([job("scan"), job("ocr", map="scan"), job("join", "ocr")])
    flow.run(results={"scan": [1, 2, 3, 4]})
    assert flow.state(started.workflow_id) == "failed"
    flow.operator.connection.execute("select trunkline.set_setting('max_workflow_jobs', '6')")
    flow.retry(started.workflow_id)
    flow.expand()
    assert len(flow.run()) == 5
    found = flow.workflow(started.workflow_id)
    assert (found.state, found.generation, found.jobs) == ("completed", 2, 6)


def test_a_map_over_a_set_refers_to_the_result_of_the_same_index(flow: Flow) -> None:
    started = flow.start(
        [job("a", items=[{}, {}]), job("b", map="a", payload={"x": _ITEM}), job("c", map="b")]
    )
    flow.complete(*flow.take().values())
    flow.expand()
    assert _payloads(flow, started.workflow_id, "b") == [
        {"x": {"$result": "a", "item": 0}},
        {"x": {"$result": "a", "item": 1}},
    ]
    assert flow.run() == ["b/0", "b/1", "c/0", "c/1"]
    assert flow.state(started.workflow_id) == "completed"


def test_a_large_map_is_expanded_in_chunks_and_its_fan_in_waits_for_all(flow: Flow) -> None:
    started = flow.start([job("scan"), job("ocr", map="scan"), job("join", "ocr")])
    flow.complete(*flow.take().values(), results=[list(range(2500))])
    assert flow.expand() == 1000
    taken = flow.claim(2000)
    assert len(taken.jobs) == 1000
    flow.complete(*taken.attempts)
    # All that exist have completed, but not all exist.
    assert flow.steps(started.workflow_id)["ocr"] == "open"
    assert [flow.expand(), flow.expand(), flow.expand()] == [1000, 500, 0]
    flow.complete(*flow.claim(2000).attempts)
    assert flow.run() == ["join"]
    assert flow.state(started.workflow_id) == "completed"


def test_a_map_that_enqueue_refuses_fails_and_a_full_queue_only_delays_it(flow: Flow) -> None:
    flow.producer.register("paid", limits=["user/{user}"])
    flow.operator.connection.execute(
        "select trunkline.set_limit('user/{user}', '{\"concurrency\": 1}')"
    )
    started = flow.start(
        [job("scan"), job("pay", map="scan", task="paid", payload={"user": _ITEM})]
    )
    flow.run(results={"scan": [None]})
    reason = flow.operator.value(
        "select reason from trunkline.workflow_steps where workflow_id = %s and name = 'pay'",
        started.workflow_id,
    )
    assert reason.startswith("map_refused: ")
    flow.operator.connection.execute("select trunkline.pause_queue('slow', 'strike', true)")
    waiting = flow.start([job("scan"), job("b", map="scan", queue="slow")])
    flow.run(results={"scan": [1]})
    assert flow.steps(waiting.workflow_id)["b"] == "open"
    flow.operator.connection.execute("select trunkline.resume_queue('slow')")
    assert flow.expand() == 1
    assert flow.run() == ["b/0"]


def test_results_come_in_index_order_page_by_page_and_only_to_the_holder(flow: Flow) -> None:
    flow.start(
        [
            job("other"),
            job("a", items=[{} for _ in range(5)]),
            job("b", payload={"x": {"$results": "a"}}),
        ]
    )
    taken = flow.take()
    for n in (3, 0, 4, 1, 2):
        flow.complete(taken[f"a/{n}"], results=[{"n": n, "text": "x" * 2000}])
    held = flow.take()["b"]

    def page(worker: str = "w", attempt: int = 1, step: str = "a", first: int = 0) -> list[int]:
        found = flow.worker.connection.execute(
            "select item, result from trunkline.dependency_results(%s, %s, %s, %s, %s, 2)",
            (worker, held.job, attempt, step, first),
        ).fetchall()
        assert all(result["n"] == item for item, result in found)
        return [item for item, _ in found]

    assert [page(first=first) for first in (0, 2, 4)] == [[0, 1], [2, 3], [4]]
    assert refusal_of(lambda: page(worker="v"))["sqlstate"] == "TL009"
    assert refusal_of(lambda: page(attempt=2))["sqlstate"] == "TL009"
    assert refusal_of(lambda: page(step="other"))["sqlstate"] == "TL044"
    assert refusal_of(lambda: page(step="b"))["sqlstate"] == "TL044"
    flow.complete(held)
    assert refusal_of(page)["sqlstate"] == "TL009"


def test_results_of_live_workflows_survive_the_drop_of_their_partition(flow: Flow) -> None:
    flow.start([job("a", items=[{}, {}]), job("b", payload={"x": {"$results": "a"}})])
    flow.complete(*flow.take().values(), results=[1, {"text": "x" * 5000}])
    held = flow.take()["b"]
    workflows.drop_ended_jobs(flow.admin.connection)
    found = flow.worker.connection.execute(
        "select result from trunkline.dependency_results('w', %s, 1, 'a')", (held.job,)
    ).fetchall()
    assert found == [(1,), ({"text": "x" * 5000},)]
    assert workflows.marks(flow.admin.connection) == []

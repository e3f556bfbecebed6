"""Progress is computed from the states of jobs, weighted by phases, and never falls."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from tests.support.internals import workflows
from tests.workflows.flow import Flow, job

# What TA-39 says, as weights: nothing has to be done for the first phase.
PHASES = [
    {"name": "base", "weight": 10},
    {"name": "text", "weight": 40},
    {"name": "pdf", "weight": 20},
    {"name": "audio", "weight": 25},
    {"name": "finalizing", "weight": 5},
]
DOCUMENTS = 16


def progress(flow: Flow, workflow: UUID) -> dict[str, Any]:
    found: dict[str, Any] = flow.producer.value("select trunkline.workflow_progress(%s)", workflow)
    return found


def percent(flow: Flow, workflow: UUID) -> int:
    found: int = progress(flow, workflow)["percent"]
    return found


def order(flow: Flow) -> UUID:
    """Start 16 documents of three kinds and a job at the end."""
    kinds = ("text", "pdf", "audio")
    steps = [
        {"name": kind, "task": "work", "phase": kind, "items": [{"payload": {}}] * DOCUMENTS}
        for kind in kinds
    ]
    last = job("finalizing", *kinds, phase="finalizing")
    workflow: UUID = flow.start([*steps, last], phases=PHASES).workflow_id
    return workflow


def test_ta_39_the_percentage_follows_the_weights_of_the_phases(flow: Flow) -> None:
    """TA-38, TA-39, TA-40: queued 0, started 10, text done 50, pdf 70, audio 95, then the end."""
    workflow = order(flow)
    assert (percent(flow, workflow), progress(flow, workflow)["phase"]) == (0, "base")
    taken = flow.take(48)
    assert (percent(flow, workflow), progress(flow, workflow)["phase"]) == (10, "text")
    seen = []
    for kind, reached in (("text", 50), ("pdf", 70), ("audio", 95)):
        for number in range(DOCUMENTS):
            flow.complete(taken[f"{kind}/{number}"])
            seen.append(percent(flow, workflow))
        assert seen[-1] == reached
    assert seen == sorted(seen)
    assert progress(flow, workflow)["phase"] == "finalizing"
    [last] = flow.take(1).values()
    call = "select trunkline.progress('w', %s, %s, %s, %s)"
    for own, shown in ((20, 96), (60, 98), (100, 99)):
        flow.worker.value(call, last.job, last.number, own, "packing")
        assert (percent(flow, workflow), progress(flow, workflow)["message"]) == (shown, "packing")
    flow.complete(last)
    assert progress(flow, workflow) == {
        "state": "completed",
        "percent": 100,
        "phase": None,
        "message": None,
        "remaining": None,
    }


def test_without_phases_each_step_counts_the_same(flow: Flow) -> None:
    pages = {"name": "pages", "task": "work", "map": "scan", "payload": {}}
    workflow = flow.start([job("scan"), pages, job("join", "pages"), job("x")]).workflow_id
    first = flow.take(2)
    scan, other = first["scan"], first["x"]
    flow.complete(scan, results=[[1, 2, 3, 4]])
    assert percent(flow, workflow) == 25
    flow.expand()
    taken = flow.take(4)
    flow.complete(taken["pages/0"], taken["pages/1"])
    found = progress(flow, workflow)
    assert (found["percent"], found["message"]) == (37, "pages: 2 of 4")
    flow.complete(other)
    assert percent(flow, workflow) == 62


def test_the_percentage_never_falls(flow: Flow) -> None:
    """TA-40: what was shown is kept, also if the work turns out to be more."""
    workflow = flow.start([job("a"), job("b")]).workflow_id
    flow.complete(flow.take(1)["a"])
    assert percent(flow, workflow) == 50
    workflows.extend_step(flow.admin.connection, workflow, place=0, jobs=9)
    assert percent(flow, workflow) == 50


def test_the_mark_is_written_only_when_it_rises(flow: Flow) -> None:
    workflow = flow.start([job("a"), job("b")]).workflow_id
    admin = flow.admin.connection
    before = workflows.row_version(admin, workflow)
    assert percent(flow, workflow) == 0
    assert workflows.row_version(admin, workflow) == before
    flow.complete(flow.take(1)["a"])
    assert percent(flow, workflow) == 50
    risen = workflows.row_version(admin, workflow)
    assert risen != before
    assert percent(flow, workflow) == 50
    assert workflows.row_version(admin, workflow) == risen


def test_a_read_only_session_sees_progress(flow: Flow) -> None:
    workflow = flow.start([job("a"), job("b")]).workflow_id
    flow.complete(flow.take(1)["a"])
    connection = flow.database.connect("trunkline_reader")
    connection.execute("set default_transaction_read_only = on")
    [row] = connection.execute("select trunkline.workflow_progress(%s)", (workflow,)).fetchall()
    assert row[0]["percent"] == 50


def test_a_retry_counts_only_what_is_complete(flow: Flow) -> None:
    workflow = flow.start([job("a"), job("b"), job("c", "b")]).workflow_id
    taken = flow.take(2)
    flow.complete(taken["a"])
    flow.fail(taken["b"])
    assert (percent(flow, workflow), flow.state(workflow)) == (33, "failed")
    flow.retry(workflow)
    assert percent(flow, workflow) == 33


def test_ex_50_in_a_batch_failed_and_cancelled_jobs_count(flow: Flow) -> None:
    """EX-50: finished jobs / total * 100, where finished includes failed and cancelled ones."""
    items: list[Any] = [{"payload": {}}] * 4
    steps = [{"name": "mails", "task": "work", "items": items}]
    workflow = flow.start(steps, kind="batch").workflow_id
    taken = flow.take(4)
    flow.fail(taken["mails/0"])
    assert percent(flow, workflow) == 25
    flow.complete(taken["mails/1"], taken["mails/2"])
    assert percent(flow, workflow) == 75
    flow.complete(taken["mails/3"])
    assert (percent(flow, workflow), flow.state(workflow)) == (100, "failed")


@pytest.mark.parametrize("tenant", [None, "t"])
def test_the_time_left_comes_from_earlier_workflows_of_the_name(
    flow: Flow, tenant: str | None
) -> None:
    for seconds in (10, 30, 20, 1000):
        done = flow.start([job("a")], tenant=tenant).workflow_id
        flow.run()
        workflows.set_duration(flow.admin.connection, done, seconds)
    other = flow.start([job("a")], name="other", tenant=tenant).workflow_id
    assert progress(flow, other)["remaining"] is None
    flow.run()
    workflow = flow.start([job("a"), job("b", "a")], tenant=tenant).workflow_id
    assert progress(flow, workflow)["remaining"] == 25
    flow.complete(flow.take(1)["a"])
    assert progress(flow, workflow)["remaining"] == 12.5

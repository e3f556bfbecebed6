"""Limits and queues are asked about the jobs that start at once; later ones wait at the claim."""

from __future__ import annotations

import pytest

from tests.workflows.flow import Flow, job, refusal_of

_LANE_FULL = "limit_queue_full"
_SPENT = "quota_spent"


@pytest.fixture
def full(flow: Flow) -> Flow:
    """A limit with two jobs in its lane, which is as many as may wait."""
    flow.producer.register("paid", limits=["api"])
    flow.operator.connection.execute(
        "select trunkline.set_limit('api', '{\"concurrency\": 9, \"depth_limit\": 2}')"
    )
    for _ in range(2):
        flow.producer.enqueue("paid")
    return flow


def test_a_full_lane_refuses_what_starts_at_once(full: Flow) -> None:
    found = refusal_of(lambda: full.start([job("a", task="paid"), job("b", "a")]))
    assert (found["code"], found["waiting"], found["asked"]) == (_LANE_FULL, 2, 1)
    assert full.producer.value("select count(*) from trunkline.workflows") == 0


def test_a_full_lane_refuses_no_later_step(full: Flow) -> None:
    """They follow each other, so three of them never wait together."""
    steps = [job("a"), *(job(name, after, task="paid") for name, after in ("ba", "cb", "dc"))]
    found = full.start(steps).workflow_id
    assert full.jobs(found) == {"a": "ready", "b": "blocked", "c": "blocked", "d": "blocked"}
    # Blocked jobs do not count for others either.
    full.operator.connection.execute("select trunkline.set_limit('api', '{\"depth_limit\": 3}')")
    full.producer.enqueue("paid")
    taken = full.claim()
    assert len(taken.attempts) == 4
    full.complete(*taken.attempts)
    assert full.jobs(found)["b"] == "ready"
    assert len(full.run()) == 3
    assert full.state(found) == "completed"


def test_an_opened_step_is_not_refused_by_a_lane_that_is_full_by_then(full: Flow) -> None:
    found = full.start([job("a"), job("b", "a", items=[{}, {}], task="paid")]).workflow_id
    attempt = full.take()["a"]
    for _ in range(2):
        full.producer.enqueue("paid")
    full.complete(attempt)
    assert full.jobs(found) == {"a": "completed", "b/0": "ready", "b/1": "ready"}


def test_a_step_that_may_never_wait_together_refuses_the_graph(full: Flow) -> None:
    """Whatever waits now: a lane for two never takes three."""
    full.run()
    wide = job("b", "a", items=[{}, {}, {}], task="paid")
    found = refusal_of(lambda: full.start([job("a"), wide]))
    assert (found["code"], found["depth_limit"]) == (_LANE_FULL, 2)
    assert full.start([job("a"), job("b", "a", items=[{}, {}], task="paid")]).jobs == 3
    # Where the limit puts off instead of refusing, it does so at the start too.
    full.operator.connection.execute(
        "select trunkline.set_limit('api', '{\"depth_refuses\": false}')"
    )
    assert full.start([job("a"), wide]).jobs == 4


def test_a_map_is_added_when_there_is_room(full: Flow) -> None:
    """Its jobs start at once, so they are asked for; the workflow waits instead of failing."""
    found = full.start([job("a"), job("b", map="a", task="paid")]).workflow_id
    full.complete(full.take()["a"], results=[[1, 2]])
    for _ in range(2):
        full.producer.enqueue("paid")
    assert full.expand() == 0
    assert full.jobs(found) == {"a": "completed"}
    assert len(full.claim().attempts) == 2
    assert full.expand() == 2
    assert full.jobs(found) == {"a": "completed", "b/0": "ready", "b/1": "ready"}


def test_a_spent_quota_refuses_what_starts_at_once(flow: Flow) -> None:
    flow.producer.register("paid", limits=["api"])
    flow.operator.connection.execute(
        "select trunkline.set_limit('api',"
        ' \'{"quota": 0, "quota_unit": "requests", "quota_window": "1 hour"}\')'
    )
    found = refusal_of(lambda: flow.start([job("a", task="paid")]))
    assert found["code"] == _SPENT
    later = flow.start([job("a"), job("b", "a", task="paid")]).workflow_id
    assert flow.run() == ["a"]
    assert flow.jobs(later) == {"a": "completed", "b": "ready"}


def test_a_closed_or_full_queue_refuses_what_starts_at_once(flow: Flow) -> None:
    """Later steps may be on a queue that is closed now."""
    flow.operator.connection.execute("select trunkline.limit_queue('slow', 2)")
    first = [job("a", queue="slow", items=[{}, {}, {}])]
    found = refusal_of(lambda: flow.start(first))
    assert (found["code"], found["asked"]) == ("queue_full", 3)
    chain = [job("a"), *(job(name, after, queue="slow") for name, after in ("ba", "cb", "dc"))]
    assert flow.start(chain).jobs == 4
    # A step that alone is too wide for the queue is refused with its graph.
    wide = [job("a"), job("b", "a", queue="slow", items=[{}, {}, {}])]
    assert refusal_of(lambda: flow.start(wide))["code"] == "queue_full"
    flow.operator.connection.execute("select trunkline.pause_queue('slow', 'x', true)")
    assert refusal_of(lambda: flow.start([job("a", queue="slow")]))["code"] == "queue_paused"
    assert flow.start(chain).jobs == 4

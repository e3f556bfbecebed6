"""Steps start when all that they wait for has completed; the workflow ends after the last one."""

from __future__ import annotations

from tests.workflows.flow import Flow, job


def test_a_chain_runs_in_order_and_completes(flow: Flow) -> None:
    started = flow.start([job("a"), job("b", "a"), job("c", "b")])
    assert (started.created, started.state, started.jobs) == (True, "queued", 3)
    assert flow.jobs(started.workflow_id) == {"a": "ready", "b": "blocked", "c": "blocked"}
    taken = flow.take()
    assert [*taken] == ["a"]
    assert flow.state(started.workflow_id) == "running"
    flow.complete(*taken.values())
    assert flow.steps(started.workflow_id) == {"a": "completed", "b": "open", "c": "blocked"}
    assert flow.run() == ["b", "c"]
    assert flow.state(started.workflow_id) == "completed"


def test_steps_may_be_given_in_any_order(flow: Flow) -> None:
    started = flow.start([job("c", "b"), job("b", "a"), job("a")])
    assert flow.run() == ["a", "b", "c"]
    assert flow.state(started.workflow_id) == "completed"


def test_ta_17_a_fan_in_starts_after_all_items_of_a_set(flow: Flow) -> None:
    """TA-09, TA-17: a job is claimed only after everything that it depends on."""
    items = [{"payload": {"n": n}} for n in range(5)]
    started = flow.start([job("many", items=items), job("last", "many")])
    assert started.jobs == 6
    taken = flow.take()
    assert [*taken] == [f"many/{n}" for n in range(5)]
    flow.complete(*list(taken.values())[:4])
    assert flow.jobs(started.workflow_id)["last"] == "blocked"
    flow.complete(taken["many/4"])
    assert flow.run() == ["last"]
    assert flow.state(started.workflow_id) == "completed"


def test_an_empty_set_completes_at_once(flow: Flow) -> None:
    started = flow.start([job("none", items=[]), job("last", "none"), job("also", items=[])])
    assert flow.steps(started.workflow_id)["none"] == "completed"
    assert flow.run() == ["last"]
    assert flow.state(started.workflow_id) == "completed"


def test_a_workflow_of_nothing_is_complete_when_it_starts(flow: Flow) -> None:
    assert flow.start([job("none", items=[]), job("more", "none", items=[])]).state == "completed"


def test_a_reference_is_a_dependency(flow: Flow) -> None:
    started = flow.start(
        [
            job("a"),
            job("b", payload={"a": {"$result": "a"}}),
            job("c", payload={"a": {"$results": "b"}}),
        ]
    )
    assert flow.jobs(started.workflow_id) == {"a": "ready", "b": "blocked", "c": "blocked"}
    assert flow.run() == ["a", "b", "c"]


def test_a_delay_counts_from_the_end_of_the_dependencies(flow: Flow) -> None:
    started = flow.start([job("a"), job("b", "a", delay="1 hour")])
    flow.complete(*flow.take().values())
    assert flow.jobs(started.workflow_id)["b"] == "scheduled"
    wait = flow.operator.value(
        "select extract(epoch from run_at - trunkline.clock())"
        " from trunkline.jobs where job_id = %s",
        flow.id_of(started.workflow_id, "b"),
    )
    assert 3590 < wait <= 3600


def test_ta_18_what_has_begun_goes_before_new_work(flow: Flow) -> None:
    """TA-18: of a half-done order and 49 new ones, the half-done one has the next five claims."""
    order = [job("text"), *(job(f"page{n}", "text") for n in range(5))]
    first = flow.start(order)
    taken = flow.take(1)
    for _ in range(49):
        flow.start(order)
    flow.complete(*taken.values())
    claimed = flow.claim(5)
    assert {row.workflow_id for row in claimed.rows} == {first.workflow_id}
    assert flow.names(claimed.attempts) == [f"page{n}" for n in range(5)]


def test_unblocked_jobs_run_in_the_order_of_their_unblocking(flow: Flow) -> None:
    """Half-done orders go before new ones of their priority. Among them, the one whose step ended
    first continues first, even if it is younger: the README of the folder says why."""
    order = [job("text"), *(job(f"page{n}", "text") for n in range(3))]
    old, young = flow.start(order), flow.start(order)
    first, second = flow.claim(2).attempts
    new = flow.start(order)
    flow.complete(second)
    flow.complete(first)
    rows = flow.claim(7).rows
    assert [row.workflow_id for row in rows] == [
        *[young.workflow_id] * 3,
        *[old.workflow_id] * 3,
        new.workflow_id,
    ]


def test_orders_unblocked_by_one_call_run_in_the_order_of_their_locks(flow: Flow) -> None:
    """The jobs of one order stay together, in the order of its steps."""
    order = [job("text"), *(job(f"page{n}", "text") for n in range(3))]
    started = [flow.start(order).workflow_id for _ in range(4)]
    flow.complete(*flow.claim(4).attempts)
    claim = flow.claim(12)
    ids = [row.workflow_id for row in claim.rows]
    assert sorted(ids) == sorted(3 * started)
    assert [ids[n] for n in (0, 3, 6, 9)] == [ids[n] for n in (2, 5, 8, 11)]
    assert flow.names(claim.attempts) == 4 * ["page0", "page1", "page2"]


def test_a_plain_job_has_no_workflow(flow: Flow) -> None:
    flow.producer.enqueue("work", payload={"a": {"$result": "none"}})
    [row] = flow.claim().rows
    assert (row.workflow_id, row.payload) == (None, {"a": {"$result": "none"}})


def test_a_fan_in_of_many_single_steps_starts_once(flow: Flow) -> None:
    names = [f"s{n}" for n in range(60)]
    started = flow.start([*(job(name) for name in names), job("last", *names)])
    taken = flow.take()
    flow.complete(*taken.values())
    assert flow.run() == ["last"]
    assert flow.state(started.workflow_id) == "completed"

"""What start_workflow stores, what a repeated start returns, and what is refused as a whole."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from tests.support.internals import rows
from tests.workflows.flow import Flow, job, refusal_of

_BAD: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("no object", {"steps": 3}, {"problem": "wrong_type", "path": "steps"}),
    ("no steps", {"steps": []}, {"problem": "steps"}),
    ("no name", {"name": ""}, {"problem": "name"}),
    ("unknown field", {"colour": "red"}, {"problem": "unknown_field", "path": "colour"}),
    ("a kind", {"kind": "saga"}, {"problem": "kind"}),
    ("a deadline in the past", {"deadline": "-1 day"}, {"problem": "deadline"}),
    ("no deadline", {"deadline": "soon"}, {"problem": "deadline"}),
    ("a phase", {"phases": [{"name": "text"}]}, {"problem": "phase", "path": "phases[0]"}),
    ("a callback", {"on_failure": {"job": 1}}, {"problem": "unknown_field"}),
    ("a callback for every end", {"on_end": {"job": 1}}, {"problem": "unknown_field"}),
    ("a step", {"steps": [3]}, {"problem": "not_an_object", "path": "steps[0]"}),
    ("no step name", {"steps": [{"task": "work"}]}, {"problem": "name", "path": "steps[0].name"}),
    ("no task", {"steps": [{"name": "a"}]}, {"problem": "task", "step": "a"}),
    ("a step's field", {"steps": [job("a", run_at="now")]}, {"path": "steps[0].run_at"}),
    ("after", {"steps": [job("a") | {"after": "b"}]}, {"problem": "after", "step": "a"}),
    ("items", {"steps": [job("a", items=[1])]}, {"problem": "items", "step": "a"}),
    ("an item's field", {"steps": [job("a", items=[{"task": "x"}])]}, {"problem": "unknown_field"}),
    ("two names", {"steps": [job("a"), job("a")]}, {"problem": "duplicate_name", "step": "a"}),
    ("after itself", {"steps": [job("a", "a")]}, {"problem": "cycle", "step": "a"}),
    ("after nothing", {"steps": [job("a", "b")]}, {"problem": "unknown_step", "refers_to": "b"}),
    ("a map of nothing", {"steps": [job("a", map="b")]}, {"problem": "unknown_step"}),
    (
        "a cycle",
        {"steps": [job("x"), job("a", "c", "x"), job("b", "a"), job("c", "b")]},
        {"problem": "cycle", "step": "b", "cycle": ["b", "c", "a"]},
    ),
    (
        "one result of several",
        {"steps": [job("a", items=[{}]), job("b", payload={"x": {"$result": "a"}})]},
        {"problem": "result_of_several", "step": "b", "path": "steps[1].payload.x"},
    ),
    (
        "an element outside of a map",
        {"steps": [job("a", payload={"x": {"$item": True}})]},
        {"problem": "reference", "path": "steps[0].payload.x"},
    ),
    (
        "an unknown result",
        {"steps": [job("a", items=[{"payload": {"x": {"$results": "z"}}}])]},
        {"problem": "unknown_step", "path": "steps[0].items[0].payload.x"},
    ),
    (
        "an item beyond a set",
        {
            "steps": [
                job("a", items=[{}, {}]),
                job("b", payload={"x": {"$result": "a", "item": 2}}),
            ]
        },
        {"problem": "no_such_item", "step": "b", "path": "steps[1].payload.x", "refers_to": "a"},
    ),
    (
        "a second item of a job",
        {"steps": [job("a"), job("b", payload={"x": {"$result": "a", "item": 1}})]},
        {"problem": "no_such_item", "step": "b"},
    ),
    (
        "an option",
        {"steps": [job("a"), job("b", delay="soon")]},
        {"problem": "option", "step": "b"},
    ),
    ("a map's key", {"steps": [job("a"), job("b", map="a", unique_key="k")]}, {"step": "b"}),
]


def _stored(flow: Flow) -> list[int]:
    return [
        rows.count(flow.admin.connection, name)
        for name in ("workflows", "workflow_steps", "workflow_keys", "waiting", "unique_keys")
    ]


@pytest.mark.parametrize(("graph", "detail"), [case[1:] for case in _BAD], ids=[c[0] for c in _BAD])
def test_a_bad_graph_is_refused_with_its_step_and_problem(
    flow: Flow, graph: dict[str, Any], detail: dict[str, Any]
) -> None:
    document = Jsonb({"name": "w", "steps": [job("a")]} | graph)
    found = refusal_of(
        lambda: flow.producer.connection.execute("select trunkline.start_workflow(%s)", (document,))
    )
    assert found["sqlstate"] == "TL041", found
    assert {name: found.get(name) for name in detail} == detail
    assert _stored(flow) == [0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("step", "sqlstate", "detail"),
    [
        (job("b", payload={"text": "x" * 300_000}), "TL003", {"step": "b"}),
        (job("b", priority=99), "TL005", {"step": "b"}),
        (job("b", items=[{}, {"delay": "-1 second"}]), "TL004", {"step": "b", "item": 1}),
        ({"name": "b", "task": "nobody"}, "TL001", {"step": "b", "task": "nobody"}),
        ({"name": "b", "task": "nobody", "map": "a"}, "TL001", {"task": "nobody"}),
        (job("b", cost={"tokens": 3}), "TL032", {"step": "b"}),
    ],
    ids=["payload", "priority", "delay", "task", "map", "cost"],
)
def test_a_job_that_enqueue_would_refuse_refuses_the_graph(
    flow: Flow, step: dict[str, Any], sqlstate: str, detail: dict[str, Any]
) -> None:
    found = refusal_of(lambda: flow.start([job("a"), step], unique_key="k"))
    assert found["sqlstate"] == sqlstate, found
    assert {name: found.get(name) for name in detail} == detail
    assert _stored(flow) == [0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("options", "sqlstate"),
    [
        ({"params": {"text": "x" * 300_000}}, "TL003"),
        ({"priority": 99}, "TL005"),
        ({"tags": ["x"] * 21}, "TL028"),
        ({"correlation_id": "x" * 201}, "TL028"),
        ({"on_failure": {"task": "nobody"}}, "TL001"),
        ({"on_failure": {"task": "work", "payload": [1]}}, "TL002"),
        ({"on_failure": {"task": "work", "priority": 99}}, "TL005"),
        ({"on_failure": {"task": "work", "max_attempts": 0}}, "TL028"),
    ],
    ids=[
        "params",
        "priority",
        "tags",
        "correlation",
        "callback task",
        "callback payload",
        "callback priority",
        "callback attempts",
    ],
)
def test_options_of_the_workflow_and_its_callbacks_have_the_rules_of_a_job(
    flow: Flow, options: dict[str, Any], sqlstate: str
) -> None:
    found = refusal_of(lambda: flow.start([job("a")], **options))
    assert found["sqlstate"] == sqlstate, found
    assert _stored(flow) == [0, 0, 0, 0, 0]


def test_a_graph_of_10001_jobs_is_refused_and_10000_start(flow: Flow) -> None:
    too_many = refusal_of(lambda: flow.start([job("a", items=[{}] * 10_001)]))
    assert (too_many["sqlstate"], too_many["max_workflow_jobs"]) == ("TL042", 10_000)
    assert _stored(flow) == [0, 0, 0, 0, 0]
    assert flow.start([job("a", items=[{}] * 9_999), job("b", "a")]).jobs == 10_000


def test_too_many_dependencies_are_refused(flow: Flow) -> None:
    names = [f"a{n}" for n in range(500)]
    steps = [job(n) for n in names] + [job(f"b{n}", *names) for n in range(401)]
    assert refusal_of(lambda: flow.start(steps))["sqlstate"] == "TL042"


def test_a_long_cycle_is_found_quickly(flow: Flow) -> None:
    steps = [job(f"s{n}", f"s{(n + 1) % 5000}") for n in range(5000)]
    found = refusal_of(lambda: flow.start(steps))
    assert (found["problem"], len(found["cycle"])) == ("cycle", 20)


def test_ta_06_the_graph_is_part_of_the_callers_transaction(flow: Flow) -> None:
    """TA-06: a workflow and all its jobs are stored in one transaction, or none of them."""
    connection = flow.producer.connection
    with connection.transaction(force_rollback=True):
        flow.start([job("a"), job("b", "a")], unique_key="k")
    assert _stored(flow) == [0, 0, 0, 0, 0]
    with connection.transaction():
        started = flow.start([job("a"), job("b", "a")])
    assert flow.jobs(started.workflow_id) == {"a": "ready", "b": "blocked"}


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_a_workflow_starts_at_every_isolation_level(flow: Flow, level: str) -> None:
    with flow.producer.connection.transaction():
        flow.producer.connection.execute(f"set transaction isolation level {level}".encode())
        started = flow.start([job("a"), job("none", "a", items=[]), job("b", "none")])
    assert flow.run() == ["a", "b"]
    assert flow.state(started.workflow_id) == "completed"


def test_ta_07_an_idempotency_key_returns_the_same_workflow(flow: Flow) -> None:
    """TA-07, TA-S12: repeated five times, the start makes one workflow with its jobs once."""
    answers = [flow.start([job("a"), job("b", "a")], idempotency_key="order 1") for _ in range(5)]
    assert [answer.created for answer in answers] == [True, False, False, False, False]
    assert {answer.workflow_id for answer in answers} == {answers[0].workflow_id}
    assert _stored(flow)[3] == 2
    flow.run()
    assert flow.start([job("a"), job("b", "a")], idempotency_key="order 1").state == "completed"
    other = refusal_of(lambda: flow.start([job("a")], idempotency_key="order 1"))
    assert (other["sqlstate"], other["differs"]) == ("TL027", ["graph"])


def test_a_unique_key_returns_the_live_workflow_and_is_free_after_its_end(flow: Flow) -> None:
    first = flow.start([job("a")], unique_key="k")
    assert flow.start([job("a"), job("b")], unique_key="k").workflow_id == first.workflow_id
    assert flow.start([job("a")], name="other", unique_key="k").created
    flow.run()
    assert flow.start([job("a")], unique_key="k").created


def test_a_held_key_of_a_job_refuses_the_start_and_names_the_holder(flow: Flow) -> None:
    holder = flow.producer.enqueue("work", unique_key="k").job_id
    found = refusal_of(lambda: flow.start([job("a"), job("b", "a", unique_key="k")]))
    assert (found["sqlstate"], found["step"], found["holder"]) == ("TL018", "b", str(holder))
    assert _stored(flow)[0] == 0
    flow.run()
    started = flow.start([job("a"), job("b", "a", unique_key="k"), job("c", unique_key="l")])
    assert flow.jobs(started.workflow_id) == {"a": "ready", "b": "blocked", "c": "ready"}
    # A blocked job holds its key.
    assert not flow.producer.enqueue("work", unique_key="k").created
    flow.run()
    assert flow.state(started.workflow_id) == "completed"


def test_jobs_take_tenant_correlation_and_priority_of_the_workflow(flow: Flow) -> None:
    flow.producer.register("paid", limits=["user/{user}"])
    flow.operator.connection.execute(
        "select trunkline.set_limit('user/{user}', '{\"concurrency\": 1}')"
    )
    started = flow.start(
        [
            job("a", items=[{"priority": 3}, {}]),
            job("b", "a", task="paid", payload={"user": "ann"}),
        ],
        tenant="acme",
        correlation_id="c",
        priority=7,
    )
    found = flow.operator.connection.execute(
        "select tenant, correlation_id, priority from trunkline.jobs where workflow_id = %s"
        " order by job_id",
        (started.workflow_id,),
    ).fetchall()
    assert found == [("acme", "c", 3), ("acme", "c", 7), ("acme", "c", 7)]
    assert len(flow.run()) == 3
    assert flow.state(started.workflow_id) == "completed"


def test_a_job_too_costly_for_its_limit_refuses_the_graph(flow: Flow) -> None:
    flow.producer.register("paid", limits=["api"])
    flow.operator.connection.execute(
        "select trunkline.set_limit('api', '{\"tokens_per_minute\": 10}')"
    )
    found = refusal_of(
        lambda: flow.start([job("a"), job("b", "a", task="paid", cost={"tokens": 11})])
    )
    assert (found["sqlstate"], found["step"]) == ("TL033", "b")


def test_a_queue_without_room_for_all_jobs_refuses_the_graph(flow: Flow) -> None:
    flow.operator.connection.execute("select trunkline.limit_queue('slow', 3)")
    steps = [job("a"), job("many", "a", items=[{}] * 4, queue="slow")]
    found = refusal_of(lambda: flow.start(steps, unique_key="k"))
    assert (found["sqlstate"], found["queue"]) == ("TL011", "slow")
    assert _stored(flow) == [0, 0, 0, 0, 0]
    started = flow.start([job("a"), job("many", "a", items=[{}] * 3, queue="slow")])
    assert flow.run() == ["a", "many/0", "many/1", "many/2"]
    assert flow.state(started.workflow_id) == "completed"


def test_a_limit_with_too_many_waiting_jobs_refuses_the_graph(flow: Flow) -> None:
    flow.producer.register("paid", limits=["api"])
    flow.operator.connection.execute(
        "select trunkline.set_limit('api', '{\"concurrency\": 1, \"depth_limit\": 3}')"
    )
    steps = [job("a"), job("many", "a", task="paid", items=[{}] * 4)]
    found = refusal_of(lambda: flow.start(steps))
    assert (found["sqlstate"], found["limit"]) == ("TL034", "api")
    assert _stored(flow) == [0, 0, 0, 0, 0]


def test_the_last_item_of_a_set_can_be_an_argument(flow: Flow) -> None:
    steps = [job("a", items=[{}, {}]), job("b", payload={"x": {"$result": "a", "item": 1}})]
    flow.start(steps)
    assert flow.run() == ["a/0", "a/1", "b"]


def test_audited_jobs_record_that_they_are_blocked(flow: Flow) -> None:
    flow.producer.register("noted", audit=True)
    for keys in ({}, {"unique_key": "k"}):
        started = flow.start([job("a"), job("b", "a", task="noted", **keys)])
        flow.run()
        kinds = flow.operator.connection.execute(
            "select kind, to_state from trunkline.events where job_id = %s order by at",
            (flow.id_of(started.workflow_id, "b"),),
        ).fetchall()
        assert kinds[:2] == [("enqueued", "blocked"), ("unblocked", "ready")]


def test_a_tenant_starts_and_sees_only_its_own(flow: Flow) -> None:
    flow.producer.connection.execute("select set_config('trunkline.tenant', 'acme', false)")
    mine = flow.start([job("a"), job("b", "a")])
    assert refusal_of(lambda: flow.start([job("a")], tenant="other"))["sqlstate"] == "TL017"
    flow.producer.connection.execute("select set_config('trunkline.tenant', 'rival', false)")
    seen = flow.producer.connection.execute("select count(*) from trunkline.workflows").fetchone()
    steps = flow.producer.connection.execute("select from trunkline.workflow_steps").fetchall()
    assert (seen, steps) == ((0,), [])
    assert refusal_of(lambda: flow.cancel(mine.workflow_id))["sqlstate"] == "TL043"
    assert flow.jobs(mine.workflow_id) == {"a": "ready", "b": "blocked"}


def test_explain_names_the_open_dependencies(flow: Flow) -> None:
    started = flow.start([job("a"), job("b", items=[{}, {}]), job("c", "a", "b")])
    flow.complete(*[a for name, a in flow.take().items() if name in {"a", "b/0"}])
    [(reason, detail)] = flow.operator.connection.execute(
        "select reason, detail from trunkline.explain(%s)", (flow.id_of(started.workflow_id, "c"),)
    ).fetchall()
    assert reason == "dependency"
    assert detail["open"] == [{"step": "b", "state": "open", "jobs": 2, "completed": 1}]


def test_callers_without_the_right_are_denied(flow: Flow) -> None:
    started = flow.start([job("a")])
    for calls, call in (
        (flow.worker, "start_workflow('{}')"),
        (flow.worker, f"cancel_workflow('{started.workflow_id}')"),
        (flow.producer, f"retry_workflow('{started.workflow_id}')"),
        (flow.producer, f"delete_workflow('{started.workflow_id}')"),
        (flow.producer, f"rerun_workflow('{started.workflow_id}')"),
        (flow.producer, "dependency_results('w', gen_random_uuid(), 1, 'a')"),
    ):
        query = f"select trunkline.{call}".encode()
        denied = refusal_of(partial(calls.connection.execute, query))
        assert denied["sqlstate"] == "42501"

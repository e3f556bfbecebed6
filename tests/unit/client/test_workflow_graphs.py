"""What a workflow is before it starts: its document, and the mistakes that are refused."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from trunkline import Results, Trunkline, WorkflowEnd
from trunkline.client import Workflow
from trunkline.errors import InvalidDuration, InvalidWorkflow, PayloadMismatch

app = Trunkline("host=nowhere.invalid")


@app.task
def scan(path: str) -> list[int]:
    return [1]


@app.task
def read(page: int, path: str = "") -> str:
    return str(page)


@app.task
def bind(title: str, pages: Results[str]) -> str:
    return title


@app.task
def save(document: dict[str, Any]) -> None: ...


@app.task
def alarm(to: str, workflow: WorkflowEnd) -> None: ...


def priced_cost(pages: list[int]) -> dict[str, int]:
    return {"tokens": len(pages)}


@app.task(limit="openai", cost=priced_cost)
def priced(pages: list[int]) -> None: ...


def document(order: Any) -> Any:
    return json.loads(order.document())


def steps(order: Any) -> dict[str, Any]:
    return {step["name"]: step for step in document(order)["steps"]}


@pytest.fixture
def order() -> Workflow:
    return app.workflow("book")


def test_a_graph_has_its_steps_with_references_and_dependencies(order: Workflow) -> None:
    pages = order.add(scan.request("a.pdf"))
    texts = order.map(pages.result, lambda page: read.request(page, path="a.pdf"))
    bound = order.add(bind.request("Book", texts.results), after="extra", name="bound")
    order.add_many([read.options(priority=3).request(1), read.request(2)], name="extra")
    order.add_last(save.request({"title": "x"}))
    assert bound.name == "bound"
    assert document(order) == {
        "name": "book",
        "kind": "workflow",
        "steps": [
            {"name": "scan", "task": "scan", "payload": {"path": "a.pdf"}},
            {
                "name": "read",
                "task": "read",
                "map": "scan",
                "payload": {"page": {"$item": True}, "path": "a.pdf"},
                "after": ["scan"],
            },
            {
                "name": "bound",
                "task": "bind",
                "payload": {"title": "Book", "pages": {"$results": "read"}},
                "after": ["read", "extra"],
            },
            {
                "name": "extra",
                "task": "read",
                "items": [{"payload": {"page": 1}, "priority": 3}, {"payload": {"page": 2}}],
            },
            {
                "name": "save",
                "task": "save",
                "payload": {"document": {"title": "x"}},
                "after": ["bound"],
            },
        ],
    }


def test_options_and_callbacks_are_in_the_document() -> None:
    order = app.workflow(
        "book",
        deadline="90m",
        unique_key="u",
        idempotency_key="i",
        tenant="t",
        correlation_id="c",
        tags=("a",),
        priority=4,
        params={"at": datetime(2026, 1, 1, tzinfo=UTC)},
        phases={"text": 40, "pdf": 60},
    )
    order.add(read.request(1), phase="pdf")
    order.on_failure(alarm.options(queue="ops").request("ann", order.end))
    order.on_completed(read.request(2))
    order.on_end(read.request(3))
    order.on_cancel(read.request(3))
    found = document(order)
    assert found.pop("steps") == [
        {"name": "read", "task": "read", "payload": {"page": 1}, "phase": "pdf"}
    ]
    assert found == {
        "name": "book",
        "kind": "workflow",
        "deadline": "5400.000000 seconds",
        "unique_key": "u",
        "idempotency_key": "i",
        "tenant": "t",
        "correlation_id": "c",
        "tags": ["a"],
        "priority": 4,
        "params": {"at": "2026-01-01T00:00:00Z"},
        "phases": [{"name": "text", "weight": 40}, {"name": "pdf", "weight": 60}],
        "on_failure": {
            "task": "alarm",
            "payload": {"to": "ann", "workflow": {"$workflow": True}},
            "queue": "ops",
        },
        "on_completed": {"task": "read", "payload": {"page": 2}},
        "on_end": {"task": "read", "payload": {"page": 3}},
        "on_cancel": {"task": "read", "payload": {"page": 3}},
    }


def test_a_chain_runs_one_step_after_the_other(order: Workflow) -> None:
    first = order.add(read.request(0), name="first")
    order.chain(scan.request("a"), read.request(1), save.request({}), after=first)
    assert [step.get("after") for step in steps(order).values()] == [
        None,
        ["first"],
        ["scan"],
        ["read"],
    ]


def test_a_map_may_go_over_the_results_of_a_set(order: Workflow) -> None:
    many = order.add_many([scan.request("a"), scan.request("b")])
    order.map(many.results, priced.options(cost={"tokens": 1}).request)
    assert steps(order)["priced"]["map"] == "scan"


def test_the_last_step_waits_for_all_ends(order: Workflow) -> None:
    order.chain(scan.request("a"), read.request(1))
    order.add(save.request({}))
    order.add_last(save.request({}), name="last")
    assert steps(order)["last"]["after"] == ["read", "save"]


def test_a_value_that_resembles_a_reference_is_escaped(order: Workflow) -> None:
    order.add(save.request({"$result": "scan"}))
    pages = order.add(scan.request("a"))
    order.add(save.request({"$value": 1}), after=pages, name="second")
    order.add(save.request({"a": {"$result": "scan"}}), name="deep")
    payloads = [step["payload"] for step in steps(order).values()]
    assert payloads == [
        {"document": {"$value": {"$result": "scan"}}},
        {"path": "a"},
        {"document": {"$value": {"$value": 1}}},
        {"document": {"a": {"$result": "scan"}}},
    ]


def test_a_batch_has_one_set_for_each_task() -> None:
    mails = app.batch("mails", tenant="t")
    mails.add(read.request(1))
    mails.add_many([scan.request("a"), read.options(delay=5).request(2)])
    mails.on_completed(alarm.request("ann", mails.end))
    found = document(mails)
    assert (found["kind"], found["tenant"]) == ("batch", "t")
    assert found["steps"] == [
        {
            "name": "read",
            "task": "read",
            "items": [
                {"payload": {"page": 1}},
                {"payload": {"page": 2}, "delay": "5.000000 seconds"},
            ],
        },
        {"name": "scan", "task": "scan", "items": [{"payload": {"path": "a"}}]},
    ]
    assert mails.tasks == {"read", "scan", "alarm"}


def test_a_cycle_is_named(order: Workflow) -> None:
    order.add(read.request(1), name="a", after="c")
    order.add(read.request(1), name="b", after="a")
    order.add(read.request(1), name="c", after="b")
    order.add(read.request(1), name="d", after="c")
    with pytest.raises(InvalidWorkflow, match="a → c → b → a"):
        order.document()


def test_a_step_that_waits_for_itself_is_a_cycle(order: Workflow) -> None:
    order.add(read.request(1), name="a", after="a")
    with pytest.raises(InvalidWorkflow, match="a → a"):
        order.document()


def test_a_long_chain_is_checked_without_recursion(order: Workflow) -> None:
    for number in range(5000, 0, -1):
        after = f"s{number - 1}" if number > 1 else ()
        order.add(read.request(number), name=f"s{number}", after=after)
    assert len(document(order)["steps"]) == 5000


def test_an_unknown_step_is_named(order: Workflow) -> None:
    order.add(read.request(1), after="scann")
    with pytest.raises(InvalidWorkflow, match="read of book waits for step scann, which does not"):
        order.document()


def test_an_empty_workflow_cannot_be_started(order: Workflow) -> None:
    with pytest.raises(InvalidWorkflow, match="cannot be started"):
        order.document()


def test_names_are_unique(order: Workflow) -> None:
    order.add(read.request(1))
    with pytest.raises(InvalidWorkflow, match="book has two steps named read"):
        order.add(read.request(2))


def test_a_result_fits_only_its_own_workflow(order: Workflow) -> None:
    pages = app.workflow("other").add(scan.request("a"))
    with pytest.raises(InvalidWorkflow, match="the result of step scan> of another workflow"):
        order.add(priced.options(cost={"tokens": 1}).request(pages.result))
    with pytest.raises(InvalidWorkflow, match="step scan of other> of another workflow"):
        order.add(read.request(1), after=pages)
    with pytest.raises(InvalidWorkflow, match="of another workflow"):
        order.map(pages.result, read.request)


def test_an_item_belongs_to_its_map(order: Workflow) -> None:
    pages = order.add(scan.request("a"))
    items: list[int] = []

    def keep(page: int) -> Any:
        items.append(page)
        return read.request(page)

    order.map(pages.result, keep)
    with pytest.raises(InvalidWorkflow, match="The item of a map cannot be an argument"):
        order.add(read.request(items[0]), name="second")


def test_the_end_of_a_workflow_is_for_callbacks_only(order: Workflow) -> None:
    with pytest.raises(InvalidWorkflow, match="The end of a workflow cannot be an argument"):
        order.add(alarm.request("ann", order.end))
    pages = order.add(scan.request("a"))
    with pytest.raises(InvalidWorkflow, match="The result of step scan cannot be an argument"):
        order.on_failure(priced.options(cost={"tokens": 1}).request(pages.result))


@pytest.mark.parametrize(
    "use",
    [
        lambda result: result[0],
        lambda result: result.real,
        lambda result: f"{result}",
        str,
        len,
        bool,
        list,
        lambda result: result * 2,
        lambda result: 1 in result,
        lambda result: result == [1],
    ],
)
def test_a_result_can_only_be_passed_on(order: Workflow, use: Any) -> None:
    pages = order.add(scan.request("a"))
    with pytest.raises(InvalidWorkflow, match="The result of step scan is not known before"):
        use(pages.result)


def test_a_cost_cannot_depend_on_a_result(order: Workflow) -> None:
    pages = order.add(scan.request("a"))
    with pytest.raises(InvalidWorkflow, match="is not known before") as error:
        priced.request(pages.result)
    assert "cost=" in error.value.hint


def test_arguments_are_checked_also_next_to_references(order: Workflow) -> None:
    pages = order.add(scan.request("a"))
    with pytest.raises(PayloadMismatch, match="Argument path does not fit read"):
        read.request(pages.result, path=5)  # type: ignore[arg-type]
    with pytest.raises(PayloadMismatch, match="unexpected keyword argument 'paht'"):
        read.request(pages.result, paht="a")  # type: ignore[call-arg, arg-type]
    with pytest.raises(PayloadMismatch, match="missing a required argument: 'title'"):
        bind.request(pages=pages.result)  # type: ignore[call-arg, arg-type]
    texts = order.map(pages.result, read.request)
    with pytest.raises(PayloadMismatch, match="results of step read are many, but argument page"):
        read.request(texts.results)  # type: ignore[arg-type]
    with pytest.raises(PayloadMismatch, match="stands for a value that only a step"):
        save.request({"pages": pages.result})


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("run_at", datetime(2026, 1, 1, tzinfo=UTC)),
        ("tenant", "t"),
        ("idempotency_key", "k"),
        ("correlation_id", "c"),
        ("accepted", True),
        ("connection", object()),
    ],
)
def test_options_of_whole_workflows_are_refused_for_a_step(
    order: Workflow, option: Any, value: Any
) -> None:
    with pytest.raises(InvalidWorkflow, match=f"read has the option {option}"):
        order.add(read.options(**{option: value}).request(1))


@pytest.mark.parametrize("name", ["", None, 5])
def test_a_workflow_needs_a_name(name: Any) -> None:
    with pytest.raises(InvalidWorkflow, match="has no name"):
        app.workflow(name)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dead_line": "1h"}, "has no argument dead_line"),
        ({"deadline": datetime(2026, 1, 1)}, "no time zone"),  # noqa: DTZ001
        ({"params": {"a": object()}}, "params of w are not JSON"),
        ({"phases": {"a": 0}}, "phases of w"),
        ({"phases": {"a": True}}, "phases of w"),
        ({"phases": ["a"]}, "phases of w"),
        ({"phases": {}}, "phases of w"),
    ],
)
def test_bad_arguments_are_refused_at_once(arguments: Any, message: str) -> None:
    with pytest.raises(InvalidWorkflow, match=message):
        app.workflow("w", **arguments)


def test_a_bad_deadline_is_refused_at_once() -> None:
    with pytest.raises(InvalidDuration):
        app.workflow("w", deadline="soon")


def test_a_phase_must_be_declared(order: Workflow) -> None:
    with pytest.raises(InvalidWorkflow, match="read of book is in phase text, which is not"):
        order.add(read.request(1), phase="text")


@pytest.mark.parametrize("wrong", [read, 5, None, {"task": "read"}])
def test_a_step_takes_a_request(order: Workflow, wrong: Any) -> None:
    with pytest.raises(InvalidWorkflow, match="is not a request"):
        order.add(wrong)
    with pytest.raises(InvalidWorkflow, match="is not a request"):
        order.add_many([wrong])
    with pytest.raises(InvalidWorkflow, match="is not a request"):
        order.on_failure(wrong)
    with pytest.raises(InvalidWorkflow, match="is not a request"):
        app.batch("b").add(wrong)


def test_all_jobs_of_a_set_belong_to_one_task(order: Workflow) -> None:
    with pytest.raises(InvalidWorkflow, match="got requests of read, scan"):
        order.add_many([read.request(1), scan.request("a")])  # type: ignore[arg-type]
    with pytest.raises(InvalidWorkflow, match="got no requests"):
        order.add_many([])


@pytest.mark.parametrize("wrong", [[1, 2], 5, "scan"])
def test_a_map_takes_the_result_of_a_step(order: Workflow, wrong: Any) -> None:
    with pytest.raises(InvalidWorkflow, match="map of book got"):
        order.map(wrong, read.request)


@pytest.mark.parametrize("wrong", [5, [5], None])
def test_after_takes_steps_or_names(order: Workflow, wrong: Any) -> None:
    with pytest.raises(InvalidWorkflow, match="after= of step read"):
        order.add(read.request(1), after=wrong)


def test_a_batch_has_no_dependencies() -> None:
    mails = app.batch("mails")
    pages = app.workflow("w").add(scan.request("a"))
    with pytest.raises(InvalidWorkflow):
        mails.add(read.request(pages.result))  # type: ignore[arg-type]


def test_a_plain_job_cannot_use_a_result(order: Workflow) -> None:
    pages = order.add(scan.request("a"))
    with pytest.raises(InvalidWorkflow, match="not part of a workflow"):
        read.sync.enqueue(pages.result)  # type: ignore[arg-type]
    with pytest.raises(InvalidWorkflow, match="not part of a workflow"):
        app.sync.enqueue_many([read.request(pages.result)])  # type: ignore[arg-type]

"""Calls about a large workflow read a bounded number of rows, however many jobs have ended.

The bounds are the same at both sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.plans.measuring import Work, measure
from tests.support import databases
from tests.support.calls import Attempt, Calls
from tests.support.servers import Server
from trunkline.db.calls.workflows import list_workflows
from trunkline.model import WorkflowState

OPERATOR, WORKER = "trunkline_operator", "trunkline_worker"
FEW, MANY = 1_000, 5_000
_FLOWS = ("workflows", "workflow_steps", "workflow_ends", "workflow_keys", "workflow_marks")


@dataclass(frozen=True, slots=True)
class Scene:
    """Workflows of which most jobs have ended."""

    superuser: psycopg.Connection[Any]
    workflow: UUID
    running: list[Attempt]
    single: list[Attempt]
    last: Attempt


@pytest.fixture(scope="module", params=[FEW, MANY])
def scene(server: Server, template: str, request: pytest.FixtureRequest) -> Iterator[Scene]:
    """Half of a set is complete, half of as many single steps, and a job runs after a third one."""
    jobs = request.param
    with databases.fresh(server, template) as database:
        calls = Calls(database.superuser())
        calls.register("work")
        names = [f"s{n}" for n in range(jobs)]
        last = {"name": "last", "task": "work"}
        graphs: list[list[dict[str, Any]]] = [
            [_many(jobs, "set"), last | {"after": ["many"]}],
            [
                *({"name": n, "task": "work", "queue": "single"} for n in names),
                last | {"after": names},
            ],
            [_many(jobs, "done"), last | {"payload": {"all": {"$results": "many"}}}],
        ]
        ids = [
            calls.value("select workflow_id from trunkline.start_workflow(%s)", _graph(steps))
            for steps in graphs
        ]
        held = {q: calls.claim("w", jobs, queues=[q]).attempts for q in ("set", "single", "done")}
        for queue, number in (("set", jobs // 2), ("single", jobs // 2), ("done", jobs)):
            done = held[queue][:number]
            calls.batch("complete", "w", done, results=[Jsonb(1)] * number)
        [attempt] = calls.claim("w", 1).attempts
        calls.connection.execute("vacuum analyze")
        half = jobs // 2
        yield Scene(calls.connection, ids[0], held["set"][half:], held["single"][half:], attempt)


def _many(jobs: int, queue: str) -> dict[str, Any]:
    return {"name": "many", "task": "work", "queue": queue, "items": [{}] * jobs}


def _graph(steps: list[dict[str, Any]]) -> Jsonb:
    return Jsonb({"name": "w", "steps": steps})


def _checked(work: Work, rows: int) -> None:
    read = {
        name: work.by_index.get(name, 0) for name in ("waiting", "running", "finished", *_FLOWS)
    }
    assert sum(read.values()) <= rows, read
    assert not {
        name: work.sequential.get(name, 0) for name in _FLOWS if work.sequential.get(name, 0) > rows
    }


def test_an_end_within_a_wide_step_reads_a_few_rows(scene: Scene) -> None:
    one = scene.running[0]
    call = "trunkline.complete('w', array[%s]::uuid[], array[%s])"
    _checked(measure(scene.superuser, WORKER, call, one.job, one.number), 20)


def test_the_end_of_a_step_reads_a_few_rows(scene: Scene) -> None:
    one = scene.single[0]
    call = "trunkline.complete('w', array[%s]::uuid[], array[%s])"
    _checked(measure(scene.superuser, WORKER, call, one.job, one.number), 40)


@pytest.mark.parametrize("first", [0, 900])
def test_a_page_of_results_reads_its_rows(scene: Scene, first: int) -> None:
    call = "trunkline.dependency_results('w', %s, 1, 'many', %s, 50)"
    work = measure(scene.superuser, WORKER, call, scene.last.job, first)
    assert work.rows_out == 50
    _checked(work, 110)


def test_the_state_of_a_workflow_reads_a_few_rows(scene: Scene) -> None:
    call = "(select name, state from trunkline.workflows where workflow_id = %s) as w"
    _checked(measure(scene.superuser, OPERATOR, call, scene.workflow), 20)


def test_the_duties_read_no_ends_of_live_workflows(scene: Scene) -> None:
    work = measure(scene.superuser, OPERATOR, "trunkline.run_duty('expand_workflows')")
    _checked(work, 20)
    work = measure(scene.superuser, OPERATOR, "trunkline.run_duty('sweep_workflows')")
    _checked(work, 20)


@pytest.mark.parametrize("states", [None, [WorkflowState.QUEUED], [WorkflowState.FAILED]])
def test_a_page_of_workflows_reads_its_rows(
    server: Server, template: str, states: list[WorkflowState] | None
) -> None:
    """The view alone would read and sort all of them, because it passes no limit on."""
    page = list_workflows(name=None, states=states, tenant=None, limit=10, before=None)
    # The progress of each reads the times of others of its name.
    call = page.sql.replace(", trunkline.workflow_progress(workflow_id)", "")
    assert call != page.sql
    with databases.fresh(server, template) as database:
        calls = Calls(database.superuser())
        calls.register("work")
        for number in range(300):
            name = "live" if number % 2 else "stopped"
            workflow = calls.value(
                "select workflow_id from trunkline.start_workflow(%s)",
                Jsonb({"name": name, "steps": [{"name": "only", "task": "work"}]}),
            )
            if name == "stopped":
                calls.value("select outcome from trunkline.cancel_workflow(%s)", workflow)
        calls.connection.execute("vacuum analyze")
        work = measure(calls.connection, OPERATOR, f"({call}) as w", *page.parameters)
    assert work.rows_out == (0 if states == [WorkflowState.FAILED] else 10)
    # A filter that none matches is the only one that reads all.
    _checked(work, 700 if states == [WorkflowState.FAILED] else 100)

"""Short calls about workflows: start one, run its jobs by the names of their steps, read it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import namedtuple_row
from psycopg.types.json import Jsonb

from tests.support.calls import Attempt, Calls, Claim, Verdict
from tests.support.databases import Database

__all__ = ["Flow", "job", "refusal_of"]


def job(name: str, *after: str, **more: Any) -> dict[str, Any]:
    """Return a step of a graph."""
    step: dict[str, Any] = {"name": name, "task": "work", **more}
    return step | ({"after": list(after)} if after else {})


def refusal_of(call: Callable[[], object]) -> dict[str, Any]:
    """Return SQLSTATE and detail of the refusal that a call ends with."""
    with pytest.raises(psycopg.DatabaseError) as refused:
        call()
    detail = refused.value.diag.message_detail or "{}"
    return {"sqlstate": refused.value.sqlstate, **json.loads(detail)}


class Flow:
    """One database, as seen by a producer, a worker and an operator."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.producer = Calls(database.connect("trunkline_producer"))
        self.worker = Calls(database.connect("trunkline_worker"))
        self.operator = Calls(database.connect("trunkline_operator"))
        self.admin = Calls(database.superuser())

    def start(self, steps: Sequence[dict[str, Any]], name: str = "w", **more: Any) -> Any:
        """Start a workflow; return (workflow_id, created, state, jobs)."""
        graph = Jsonb({"name": name, "steps": list(steps), **more})
        with self.producer.connection.cursor(row_factory=namedtuple_row) as cursor:
            return cursor.execute("select * from trunkline.start_workflow(%s)", (graph,)).fetchone()

    def workflow(self, workflow: UUID) -> Any:
        """Return its row of the view."""
        with self.operator.connection.cursor(row_factory=namedtuple_row) as cursor:
            return cursor.execute(
                "select * from trunkline.workflows where workflow_id = %s", (workflow,)
            ).fetchone()

    def state(self, workflow: UUID) -> str:
        state: str = self.workflow(workflow).state
        return state

    def steps(self, workflow: UUID) -> dict[str, str]:
        """Return the state of each step."""
        return dict(
            self.operator.connection.execute(
                "select name, state from trunkline.workflow_steps where workflow_id = %s",
                (workflow,),
            ).fetchall()
        )

    def jobs(self, workflow: UUID) -> dict[str, str]:
        """Return the states of its jobs by step, those of a set by step and index."""
        rows = self.operator.connection.execute(
            "select s.name, j.workflow_item, j.state from trunkline.jobs as j"
            " join trunkline.workflow_steps as s"
            "   on s.workflow_id = j.workflow_id and s.place = j.workflow_step"
            " where j.workflow_id = %s",
            (workflow,),
        ).fetchall()
        return {name if item is None else f"{name}/{item}": state for name, item, state in rows}

    def id_of(self, workflow: UUID, step: str, item: int | None = None) -> UUID:
        found: UUID = self.operator.value(
            "select j.job_id from trunkline.jobs as j join trunkline.workflow_steps as s"
            "   on s.workflow_id = j.workflow_id and s.place = j.workflow_step"
            " where j.workflow_id = %s and s.name = %s and j.workflow_item is not distinct from %s",
            workflow,
            step,
            item,
        )
        return found

    def claim(self, limit: int = 100) -> Claim:
        return self.worker.claim("w", limit, queues=["default", "slow"])

    def names(self, attempts: Iterable[Attempt]) -> list[str]:
        """Return the steps of these attempts, in their order."""
        return [
            self.operator.value(
                "select coalesce(s.name || coalesce('/' || j.workflow_item, ''), j.task)"
                " from trunkline.jobs as j left join trunkline.workflow_steps as s"
                "   on s.workflow_id = j.workflow_id and s.place = j.workflow_step"
                " where j.job_id = %s",
                attempt.job,
            )
            for attempt in attempts
        ]

    def take(self, limit: int = 100) -> dict[str, Attempt]:
        """Claim jobs; return the attempts by their steps."""
        attempts = self.claim(limit).attempts
        return dict(zip(self.names(attempts), attempts, strict=True))

    def complete(self, *attempts: Attempt, results: Sequence[Any] | None = None) -> list[Verdict]:
        more = {} if results is None else {"results": [Jsonb(one) for one in results]}
        return self.worker.batch("complete", "w", attempts, **more)

    def fail(self, *attempts: Attempt) -> list[Verdict]:
        """End attempts for good."""
        return self.worker.batch("fail", "w", attempts, retryable=[False] * len(attempts))

    def run(self, results: dict[str, Any] | None = None, fail: Sequence[str] = ()) -> list[str]:
        """Run jobs until none is ready; return their steps in the order of their claims."""
        done: list[str] = []
        while taken := self.take(1):
            for name, attempt in taken.items():
                done.append(name)
                if name in fail:
                    self.fail(attempt)
                else:
                    self.complete(attempt, results=[(results or {}).get(name)])
            self.expand()
        return done

    def expand(self) -> int:
        rows: int = self.worker.value("select rows from trunkline.run_duty('expand_workflows')")
        return rows

    def advance(self) -> int:
        rows: int = self.worker.value("select rows from trunkline.run_duty('advance_workflows')")
        return rows

    def cancel(self, workflow: UUID, reason: str | None = None) -> str:
        outcome: str = self.producer.value(
            "select outcome from trunkline.cancel_workflow(%s, %s)", workflow, reason
        )
        return outcome

    def retry(self, workflow: UUID) -> Any:
        return self.operator.value("select jobs from trunkline.retry_workflow(%s)", workflow)

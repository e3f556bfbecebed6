"""Calls that start, read and change workflows."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, LiteralString
from uuid import UUID

from trunkline.db.call import Call, Row, one, plain_text, rows_of
from trunkline.db.calls.job_columns import DETAIL
from trunkline.db.calls.read import DETAIL_NAMES, job_of
from trunkline.model import (
    ChangedWorkflow,
    FailedItem,
    Job,
    JobState,
    StartedWorkflow,
    StepResult,
    StepStatus,
    WorkflowProgress,
    WorkflowState,
    WorkflowStatus,
)

__all__ = [
    "START",
    "cancel",
    "delete",
    "failed_items",
    "jobs",
    "list_workflows",
    "progress",
    "rerun",
    "resolve",
    "results",
    "retry",
    "start",
    "state",
    "workflow",
]

START: Final[LiteralString] = (
    "select workflow_id, created, state, jobs"
    " from trunkline.start_workflow(p_graph => %s::text::jsonb)"
)
_COLUMNS: Final[LiteralString] = (
    "workflow_id, name, kind, state, tenant, created_at, ended_at, deadline, cancel_requested_at, "
    "generation, jobs, completed, dead, cancelled, reason, unique_key, correlation_id, tags, "
    "rerun_of, parent_job"
)
_SELECT: Final[LiteralString] = "select " + _COLUMNS + ", trunkline.workflow_progress(workflow_id)"
_STEPS: Final[LiteralString] = (
    "(select coalesce(jsonb_agg(to_jsonb(s) order by s.place), '[]')"
    " from trunkline.workflow_steps as s where s.workflow_id = %s::uuid)"
)
_JOBS: Final[LiteralString] = "select " + DETAIL
_NAMES: Final = [
    {"workflow_id": "id", "dead": "failed"}.get(name, name)
    for name in (*_COLUMNS.split(", "), "progress")
]


def start(document: str) -> Call[StartedWorkflow]:
    """Start a workflow from a graph as a JSON document."""
    return Call(START, (document,), one(StartedWorkflow))


def workflow(workflow_id: UUID) -> Call[WorkflowStatus | None]:
    """Return one workflow with its steps and params, or None."""
    sql: LiteralString = (
        _SELECT + ", params, " + _STEPS + " from trunkline.workflows where workflow_id = %s::uuid"
    )

    def decode(rows: Sequence[Row]) -> WorkflowStatus | None:
        if not rows:
            return None
        *columns, params, steps = rows[0]
        return _status(columns, params=params, steps=tuple(_step(step) for step in steps))

    return Call(sql, (workflow_id, workflow_id), decode)


def state(workflow_id: UUID) -> Call[WorkflowState | None]:
    """Return the state of a workflow, or None if there is no such workflow."""
    return Call(
        "select state from trunkline.workflows where workflow_id = %s::uuid",
        (workflow_id,),
        lambda rows: WorkflowState(rows[0][0]) if rows else None,
    )


def list_workflows(
    *,
    name: str | None,
    states: Sequence[WorkflowState] | None,
    tenant: str | None,
    limit: int,
    before: UUID | None,
) -> Call[list[WorkflowStatus]]:
    """Return workflows, newest first, without their steps and params."""
    sql: LiteralString = (
        # The ids select rows by their index; the view passes no limit on. Within a subquery the
        # planner does not call the function for an estimate.
        _SELECT + " from trunkline.workflows where workflow_id = any((select"
        " trunkline.find_workflows(p_names => %s::text[], p_states => %s::text[],"
        " p_tenant => %s, p_limit => %s::integer, p_before => %s::uuid))::uuid[])"
        " order by workflow_id desc"
    )
    parameters = (
        None if name is None else [name],
        None if states is None else [str(found) for found in states],
        tenant,
        limit,
        before,
    )
    return Call(sql, parameters, lambda rows: [_status(row) for row in rows])


def failed_items(workflow_id: UUID) -> Call[list[FailedItem]]:
    """Return the first hundred jobs of a workflow that are dead, and steps without such a job."""
    sql: LiteralString = (
        "select s.name, j.job_id, j.workflow_item, j.reason"
        " from trunkline.workflow_jobs("
        "p_workflow => %s::uuid, p_states => array['dead'], p_limit => 100) as j"
        " join trunkline.workflow_steps as s"
        " on s.workflow_id = j.workflow_id and s.place = j.workflow_step"
        " union all"
        " select s.name, null, null, s.reason from trunkline.workflow_steps as s"
        " where s.workflow_id = %s::uuid and s.state = 'failed' and s.not_completed = 0"
    )
    return Call(
        sql,
        (workflow_id, workflow_id),
        lambda rows: [FailedItem(step, job, item, reason) for step, job, item, reason in rows],
    )


def jobs(
    workflow_id: UUID, step: str | None, state: JobState | None, start: int, limit: int
) -> Call[list[Job]]:
    """Return jobs of a workflow in the order of its steps, without bodies."""
    sql: LiteralString = (
        _JOBS + " from trunkline.workflow_jobs(p_workflow => %s::uuid, p_step => %s,"
        " p_states => %s::text[], p_from => %s::integer, p_limit => %s::integer)"
    )
    states = None if state is None else [str(state)]
    return Call(
        sql,
        (workflow_id, step, states, start, limit),
        lambda rows: [job_of(DETAIL_NAMES, row) for row in rows],
    )


def progress(workflow_id: UUID) -> Call[WorkflowProgress]:
    """Return how far a workflow is, and the estimated time left."""
    return Call(
        "select trunkline.workflow_progress(p_workflow => %s::uuid)",
        (workflow_id,),
        lambda rows: _progress(rows[0][0]),
    )


def _progress(values: Mapping[str, Any]) -> WorkflowProgress:
    return WorkflowProgress(**{**values, "state": WorkflowState(values["state"])})


def results(workflow_id: UUID, step: str, start: int, limit: int) -> Call[list[StepResult]]:
    """Return results of a step with the indexes of their jobs, from an index on."""
    return Call(
        "select item, result, path, sha256, bytes from trunkline.workflow_results("
        "p_workflow => %s::uuid, p_step => %s, p_from => %s::integer, p_limit => %s::integer)",
        (workflow_id, step, start, limit),
        rows_of(StepResult),
    )


def cancel(workflow_id: UUID, reason: str | None) -> Call[ChangedWorkflow]:
    """Cancel the jobs that have not started and ask the running ones to stop."""
    return Call(
        "select workflow_id, outcome, state, jobs"
        " from trunkline.cancel_workflow(p_workflow => %s::uuid, p_reason => %s)",
        (workflow_id, plain_text(reason)),
        one(ChangedWorkflow),
    )


def retry(workflow_id: UUID) -> Call[ChangedWorkflow]:
    """Run the dead part of a workflow again."""
    return Call(
        "select workflow_id, outcome, state, jobs"
        " from trunkline.retry_workflow(p_workflow => %s::uuid)",
        (workflow_id,),
        one(ChangedWorkflow),
    )


def delete(workflow_id: UUID) -> Call[ChangedWorkflow]:
    """Delete an ended workflow permanently."""
    return Call(
        "select workflow_id, outcome, state, jobs"
        " from trunkline.delete_workflow(p_workflow => %s::uuid)",
        (workflow_id,),
        one(ChangedWorkflow),
    )


def resolve(prefix: str, limit: int) -> Call[list[UUID]]:
    """Return workflows whose ids begin with these hexadecimal digits."""
    first, last = UUID(prefix.ljust(32, "0")), UUID(prefix.ljust(32, "f"))
    return Call(
        "select workflow_id from trunkline.workflows"
        " where workflow_id between %s::uuid and %s::uuid order by workflow_id limit %s::integer",
        (first, last, limit),
        lambda rows: [row[0] for row in rows],
    )


def rerun(workflow_id: UUID, from_step: str | None) -> Call[StartedWorkflow]:
    """Start a new workflow with the same steps; those before from_step keep their results."""
    return Call(
        "select workflow_id, created, state, jobs"
        " from trunkline.rerun_workflow(p_workflow => %s::uuid, p_from_step => %s)",
        (workflow_id, from_step),
        one(StartedWorkflow),
    )


def _status(
    columns: Sequence[Any],
    params: Mapping[str, Any] | None = None,
    steps: tuple[StepStatus, ...] = (),
) -> WorkflowStatus:
    values = dict(zip(_NAMES, columns, strict=True))
    values["state"] = WorkflowState(values["state"])
    values["tags"] = tuple(values["tags"] or ())
    values["progress"] = _progress(values["progress"])
    return WorkflowStatus(**values, params=params, steps=steps)


def _step(row: Mapping[str, Any]) -> StepStatus:
    ended = row["ended_at"]
    return StepStatus(
        name=row["name"],
        task=row["task"],
        kind=row["kind"],
        state=row["state"],
        items=row["items"],
        completed=row["completed"],
        not_completed=row["not_completed"],
        after=tuple(row["after"] or ()),
        map_over=row["map_over"],
        phase=row["phase"],
        reason=row["reason"],
        ended_at=None if ended is None else datetime.fromisoformat(ended),
    )

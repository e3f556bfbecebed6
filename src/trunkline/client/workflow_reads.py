"""Arguments and answers of calls about existing workflows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from trunkline.errors import InvalidArgument, ResultMissing, WorkflowCancelled, WorkflowFailed
from trunkline.model import FailedItem, WorkflowState, WorkflowStatus

__all__ = ["as_end", "as_states", "as_workflow_id", "one_result"]


def as_workflow_id(workflow: Any) -> UUID:
    """Return the id of a workflow from an id, its text or a handle."""
    known = getattr(workflow, "id", workflow)
    if isinstance(known, UUID):
        return known
    try:
        return UUID(known)
    except (ValueError, AttributeError, TypeError) as error:
        raise InvalidArgument(
            "a workflow id is not a UUID",
            hint="Pass the handle that start returned, or its id.",
            detail={"workflow": repr(workflow)},
        ) from error


def as_states(states: WorkflowState | str | Sequence[WorkflowState | str]) -> list[WorkflowState]:
    """Return the states, or refuse one that does not exist."""
    names = [states] if isinstance(states, str) else list(states)
    try:
        return [WorkflowState(name) for name in names]
    except ValueError as error:
        raise InvalidArgument(
            "unknown state",
            hint="Pass one of " + ", ".join(WorkflowState),
            detail={"state": str(error)},
        ) from error


def as_end(status: WorkflowStatus, failed: list[FailedItem]) -> WorkflowStatus:
    """Return a workflow that completed, or raise how it ended."""
    if status.state is WorkflowState.FAILED:
        raise WorkflowFailed(status.id, status.name, status.reason, failed=tuple(failed))
    if status.state is WorkflowState.CANCELLED:
        raise WorkflowCancelled(status.id, status.name, status.reason)
    return status


def one_result(step: str, rows: Sequence[Sequence[Any]]) -> Any:
    """Return the only result of a step."""
    if len(rows) != 1:
        what = "has no result yet" if not rows else "has many results"
        raise ResultMissing(
            f"Step {step} {what}",
            hint="Wait for the workflow first." if not rows else "Read them with results(step).",
        )
    return rows[0][1]

"""Errors of waiting for a workflow and of reading it."""

from typing import Any
from uuid import UUID

from trunkline.errors.base import TrunklineError


class WorkflowError(TrunklineError):
    """An error of one workflow."""

    code = "workflow_error"


class WorkflowFailed(WorkflowError):
    """The awaited workflow failed."""

    code = "workflow_failed"
    hint = (
        "Show it: `trunkline workflows show ID`. Run the failed part again: "
        "`trunkline workflows retry ID`."
    )

    def __init__(
        self,
        workflow_id: UUID,
        name: str,
        reason: str | None = None,
        *,
        failed: tuple[Any, ...] = (),
    ) -> None:
        where = ", ".join(dict.fromkeys(item.step for item in failed))
        what = " at " + where if where else f": {reason}" if reason else ""
        super().__init__(f"Workflow {name} {workflow_id} failed{what}")
        self.hint = self.hint.replace("ID", str(workflow_id))
        self.workflow_id = workflow_id
        self.reason = reason
        # The first hundred jobs that failed: step, job, item and reason of each.
        self.failed = failed


class WorkflowCancelled(WorkflowError):
    """The awaited workflow was cancelled."""

    code = "workflow_cancelled"
    hint = (
        "`trunkline workflows show ID` shows when and why. `trunkline workflows rerun ID` starts "
        "a new one."
    )

    def __init__(self, workflow_id: UUID, name: str, reason: str | None = None) -> None:
        super().__init__(
            f"Workflow {name} {workflow_id} was cancelled" + (f": {reason}" if reason else "")
        )
        self.hint = self.hint.replace("ID", str(workflow_id))
        self.workflow_id = workflow_id
        self.reason = reason


class WorkflowTimeout(WorkflowError, TimeoutError):
    """The workflow did not end within the timeout. It still waits or runs."""

    code = "workflow_timeout"
    hint = "Wait longer, or find out what it waits for: `trunkline workflows show ID`."

    def __init__(self, workflow_id: UUID, seconds: float) -> None:
        super().__init__(f"Workflow {workflow_id} had not ended after {seconds:g} seconds")
        self.hint = self.hint.replace("ID", str(workflow_id))
        self.workflow_id = workflow_id


class NotInWorkflow(WorkflowError):
    """A handler asked for the workflow of a plain job."""

    code = "not_in_workflow"
    hint = "Check ctx.workflow_id first: it is None for a plain job."


class ResultMissing(WorkflowError):
    """The step has no single result: its job has not completed, or it has many jobs."""

    code = "result_missing"
    hint = "Wait for the workflow first; read the results of many jobs with results(step)."

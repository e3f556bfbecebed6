"""Workflows: find them, look at their steps, cancel, retry, rerun and delete them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from trunkline.db.calls import workflows as calls
from trunkline.errors import InvalidArgument, UnknownWorkflow
from trunkline.model import (
    ChangedWorkflow,
    FailedItem,
    Job,
    JobState,
    StartedWorkflow,
    WorkflowState,
    WorkflowStatus,
)
from trunkline.operate._async.session import AsyncSession
from trunkline.operate.job_ids import as_workflow_id, id_or_prefix

__all__ = ["AsyncOperatedWorkflows"]

# Ids that an error about an ambiguous prefix lists.
_CANDIDATES: Final = 5


class AsyncOperatedWorkflows:
    """All workflows; `operator.workflows`."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    async def list(
        self,
        *,
        name: str | None = None,
        states: Sequence[WorkflowState] | None = None,
        tenant: str | None = None,
        limit: int = 100,
        before: UUID | str | None = None,
    ) -> list[WorkflowStatus]:
        """Return workflows with their progress, newest first; `before` is the last id seen."""
        place = None if before is None else as_workflow_id(before)
        return await self._session.run(
            calls.list_workflows(name=name, states=states, tenant=tenant, limit=limit, before=place)
        )

    async def get(self, workflow: UUID | str) -> WorkflowStatus:
        """Return one workflow with its steps and its progress."""
        status = await self._session.run(calls.workflow(as_workflow_id(workflow)))
        if status is None:
            raise self._unknown(workflow)
        return status

    async def resolve(self, workflow: UUID | str) -> UUID:
        """Return the id that begins with a prefix of 8 or more digits; dashes are optional."""
        start = id_or_prefix(workflow)
        if isinstance(start, UUID):
            return start
        candidates = await self._session.run(calls.resolve(start, _CANDIDATES))
        match candidates:
            case []:
                raise self._unknown(workflow)
            case [workflow_id]:
                return workflow_id
            case _:
                raise InvalidArgument(
                    "several workflows have an id that starts like this",
                    hint="Type more digits of the id.",
                    detail={
                        "workflow": workflow,
                        "candidates": ", ".join(map(str, candidates)),
                    },
                )

    async def jobs(
        self,
        workflow: UUID | str,
        step: str | None = None,
        *,
        state: JobState | None = None,
        start: int = 0,
        limit: int = 100,
    ) -> Sequence[Job]:
        """Return jobs of a workflow in the order of its steps, without payloads and results."""
        call = calls.jobs(as_workflow_id(workflow), step, state, start, limit)
        return await self._session.run(call)

    async def failed(self, workflow: UUID | str) -> Sequence[FailedItem]:
        """Return the first hundred jobs of a workflow that are dead letters."""
        return await self._session.run(calls.failed_items(as_workflow_id(workflow)))

    async def cancel(self, workflow: UUID | str, *, reason: str | None = None) -> ChangedWorkflow:
        """Cancel the jobs that have not started and ask the running ones to stop."""
        call = calls.cancel(as_workflow_id(workflow), reason)
        return await self._session.run(call, reason=reason)

    async def retry(self, workflow: UUID | str, *, reason: str | None = None) -> ChangedWorkflow:
        """Run the failed part again, with what depends on it."""
        return await self._session.run(calls.retry(as_workflow_id(workflow)), reason=reason)

    async def rerun(
        self, workflow: UUID | str, *, from_step: str | None = None, reason: str | None = None
    ) -> StartedWorkflow:
        """Start an ended workflow again as a new one.

        With `from_step`, completed steps that do not depend on it keep their results.
        """
        call = calls.rerun(as_workflow_id(workflow), from_step)
        return await self._session.run(call, reason=reason)

    async def delete(self, workflow: UUID | str, *, reason: str | None = None) -> ChangedWorkflow:
        """Delete an ended workflow permanently, with its jobs and their results."""
        return await self._session.run(calls.delete(as_workflow_id(workflow)), reason=reason)

    def _unknown(self, workflow: UUID | str) -> UnknownWorkflow:
        return UnknownWorkflow(
            "unknown workflow",
            hint="Check the id; ended workflows are kept for the setting workflow_retention.",
            detail={"workflow": str(workflow), "server": self._session.caller.address},
        )

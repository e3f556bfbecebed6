"""Existing workflows: read them, wait for them, change them."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload
from uuid import UUID

from trunkline.client.graph import AnyStep, Graph, Step, StepSet
from trunkline.client.workflow_reads import as_end, as_states, as_workflow_id, one_result
from trunkline.db.calls import workflows as calls
from trunkline.db.patient import CALL_PATIENCE
from trunkline.errors import (
    ConnectionLost,
    DatabaseProblem,
    DatabaseUnreachable,
    UnknownWorkflow,
    WorkflowTimeout,
)
from trunkline.model import (
    ChangedWorkflow,
    Duration,
    Job,
    JobState,
    StartedWorkflow,
    WorkflowEvent,
    WorkflowEvents,
    WorkflowProgress,
    WorkflowState,
    WorkflowStatus,
    seconds,
)

if TYPE_CHECKING:
    from trunkline.client._async.connection import AsyncClient

__all__ = ["AsyncWorkflowHandle", "AsyncWorkflows"]

R = TypeVar("R")

# How often a waiting client reads the workflow: often at first.
_FIRST_PAUSE: Final = 0.01
_LONGEST_PAUSE: Final = 1.0
_SLOWER: Final = 1.5
# A wait that takes longer than this follows the workflow, and reads it again this often.
_QUICK: Final = 0.1
_READ_EVERY: Final = 30.0
# The last read of a wait may take this long, however little time is left.
_SHORTEST_READ: Final = 0.1
# How many results are read at once.
_PAGE: Final = 500


class AsyncWorkflows:
    """The workflows of an application; `app.workflows`."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def start(self, graph: Graph, *, connection: Any = None) -> AsyncWorkflowHandle:
        """Store a workflow with its jobs, all or nothing; see Workflow.start."""
        started = await self._client.start_workflow(graph, connection)
        return AsyncWorkflowHandle(self, started, graph)

    def handle(self, workflow: UUID | str) -> AsyncWorkflowHandle:
        """Return the handle of a workflow by its id, without asking the database."""
        started = StartedWorkflow(as_workflow_id(workflow), created=False, state="", jobs=0)
        return AsyncWorkflowHandle(self, started, None)

    async def get(self, workflow: UUID | str | AsyncWorkflowHandle) -> WorkflowStatus:
        """Return one workflow with its steps."""
        return await self._find(as_workflow_id(workflow), CALL_PATIENCE)

    async def _find(self, workflow: UUID, patience: float) -> WorkflowStatus:
        status = await self._client.run(calls.workflow(workflow), patience)
        if status is None:
            raise UnknownWorkflow(
                "unknown workflow",
                hint="Check the id; ended workflows are kept for the setting workflow_retention.",
                detail={"workflow": str(workflow), "server": self._client.server},
            )
        return status

    async def list(
        self,
        *,
        name: str | None = None,
        state: WorkflowState | str | Sequence[WorkflowState | str] | None = None,
        tenant: str | None = None,
        limit: int = 100,
        before: UUID | str | None = None,
    ) -> list[WorkflowStatus]:
        """Return workflows, newest first, without their steps.

        `before` is the last id of the last page.
        """
        return await self._client.run(
            calls.list_workflows(
                name=name,
                states=None if state is None else as_states(state),
                tenant=tenant,
                limit=limit,
                before=None if before is None else as_workflow_id(before),
            )
        )

    async def wait(
        self,
        workflow: UUID | str | AsyncWorkflowHandle,
        timeout: Duration | None = None,
    ) -> WorkflowStatus:
        """Wait until a workflow has ended; return it, or raise if it failed or was cancelled.

        Raises WorkflowFailed, which names the jobs that failed, or WorkflowCancelled.
        """
        known = as_workflow_id(workflow)
        limit = None if timeout is None else seconds(timeout)
        end = None if limit is None else time.monotonic() + limit
        pause = _FIRST_PAUSE
        quick_until = time.monotonic() + _QUICK
        while not (state := await self._state(known, end)) or not state.final:
            if end is not None and time.monotonic() >= end:
                raise WorkflowTimeout(known, limit or 0.0)
            if state is not None and time.monotonic() > quick_until:
                await self._until_final(known, end)
                continue
            remaining = pause if end is None else min(pause, end - time.monotonic())
            await asyncio.sleep(max(remaining, 0.0) * random.uniform(0.9, 1.1))  # noqa: S311
            pause = min(pause * _SLOWER, _LONGEST_PAUSE)
        status = await self.get(known)
        if status.state is not WorkflowState.FAILED:
            return as_end(status, [])
        return as_end(status, await self._client.run(calls.failed_items(known)))

    async def _until_final(self, workflow: UUID, end: float | None) -> None:
        """Follow a workflow until it has ended or the time is over."""
        last = time.monotonic() + _READ_EVERY
        until = last if end is None else min(end, last)
        watch = self._client.live.open("workflow", workflow)
        try:
            while True:
                state = await watch.read(timeout=max(until - time.monotonic(), 0.0))
                if state is None or state.final:
                    return
        except TimeoutError:
            return
        finally:
            watch.close()

    async def follow(
        self,
        workflow: UUID | str | AsyncWorkflowHandle,
        *,
        timeout: Duration | None = None,
    ) -> AsyncIterator[WorkflowEvent]:
        """Yield the present state of a workflow, then its changes; the last event is `end`.

        Raises WorkflowTimeout if the workflow has not ended within the timeout.
        """
        known = as_workflow_id(workflow)
        limit = None if timeout is None else seconds(timeout)
        end = None if limit is None else time.monotonic() + limit
        events = WorkflowEvents()
        watch = self._client.live.open("workflow", known)
        try:
            while not events.ended:
                remaining = None if end is None else max(end - time.monotonic(), 0.0)
                state = await watch.read(timeout=remaining)
                if state is None:
                    # Raises UnknownWorkflow.
                    await self.get(known)
                    continue
                for event in events.of(state):
                    yield event
        except TimeoutError as error:
            raise WorkflowTimeout(known, limit or 0.0) from error
        finally:
            watch.close()

    async def _state(self, workflow: UUID, end: float | None) -> WorkflowState | None:
        """Return the state, or None if the server is away for a moment."""
        remaining = CALL_PATIENCE if end is None else end - time.monotonic()
        patience = min(max(remaining, _SHORTEST_READ), CALL_PATIENCE)
        try:
            state = await self._client.run(calls.state(workflow), patience)
        except ConnectionLost:
            return None
        except (DatabaseUnreachable, DatabaseProblem) as error:
            over = end is not None and time.monotonic() >= end
            if over or not getattr(error, "retryable", True):
                raise
            return None
        if state is None:
            # Raises UnknownWorkflow.
            return (await self.get(workflow)).state
        return state

    async def progress(self, workflow: UUID | str | AsyncWorkflowHandle) -> WorkflowProgress:
        """Return the percentage that is done, what is in work, and the estimated time left."""
        return await self._client.run(calls.progress(as_workflow_id(workflow)))

    async def jobs(
        self,
        workflow: UUID | str | AsyncWorkflowHandle,
        step: str | AnyStep | None = None,
        *,
        state: JobState | None = None,
    ) -> Sequence[Job]:
        """Return jobs of a workflow in the order of its steps, without payloads and results."""
        name = step.name if isinstance(step, AnyStep) else step
        known = as_workflow_id(workflow)
        found: list[Job] = []
        while True:
            page = await self._client.run(calls.jobs(known, name, state, len(found), _PAGE))
            found += page
            if len(page) < _PAGE:
                return found

    async def cancel(
        self, workflow: UUID | str | AsyncWorkflowHandle, reason: str | None = None
    ) -> ChangedWorkflow:
        """Cancel the jobs that have not started and ask the running ones to stop."""
        return await self._client.run(calls.cancel(as_workflow_id(workflow), reason))

    async def retry(self, workflow: UUID | str | AsyncWorkflowHandle) -> ChangedWorkflow:
        """Run the failed part again, with what depends on it."""
        return await self._client.run(calls.retry(as_workflow_id(workflow)))

    async def rerun(
        self,
        workflow: UUID | str | AsyncWorkflowHandle,
        *,
        from_step: str | AnyStep | None = None,
    ) -> AsyncWorkflowHandle:
        """Start a new workflow with the same steps.

        With `from_step`, steps that do not depend on it keep their results.
        """
        name = from_step.name if isinstance(from_step, AnyStep) else from_step
        started = await self._client.run(calls.rerun(as_workflow_id(workflow), name))
        return AsyncWorkflowHandle(self, started, None)

    async def result(self, workflow: UUID | str | AsyncWorkflowHandle, step: str) -> Any:
        """Return the result of a step that runs one job."""
        known = as_workflow_id(workflow)
        page = await self._client.run(calls.results(known, step, 0, 2))
        # Two rows are an error, which needs no files.
        rows = await self._client.artifacts.resolve_page(page[:1])
        return one_result(step, rows if len(page) == 1 else page)

    async def results(self, workflow: UUID | str | AsyncWorkflowHandle, step: str) -> Sequence[Any]:
        """Return the results of all jobs of a step, in order; they must fit into memory."""
        known = as_workflow_id(workflow)
        values: list[Any] = []
        start = 0
        while page := await self._client.run(calls.results(known, step, start, _PAGE)):
            values += [value for _, value in await self._client.artifacts.resolve_page(page)]
            start = page[-1].item + 1
        return values


class AsyncWorkflowHandle:
    """A workflow that was started."""

    def __init__(
        self, workflows: AsyncWorkflows, started: StartedWorkflow, graph: Graph | None
    ) -> None:
        self._workflows = workflows
        self._graph = graph
        self.id = started.workflow_id
        # False if a key returned a workflow that already existed.
        self.created = started.created

    def __repr__(self) -> str:
        return f"<workflow {self.id}>"

    async def get(self) -> WorkflowStatus:
        """Return the workflow with its steps."""
        return await self._workflows.get(self.id)

    async def wait(
        self,
        timeout: Duration | None = None,
    ) -> WorkflowStatus:
        """Wait until it has ended; raise WorkflowFailed or WorkflowCancelled."""
        return await self._workflows.wait(self.id, timeout)

    async def progress(self) -> WorkflowProgress:
        """Return the percentage that is done, what is in work, and the estimated time left."""
        return await self._workflows.progress(self.id)

    async def jobs(
        self, step: str | AnyStep | None = None, *, state: JobState | None = None
    ) -> Sequence[Job]:
        """Return its jobs, or those of one step, in the order of the steps."""
        return await self._workflows.jobs(self.id, step, state=state)

    async def cancel(self, reason: str | None = None) -> ChangedWorkflow:
        """Cancel the jobs that have not started and ask the running ones to stop."""
        return await self._workflows.cancel(self.id, reason)

    async def retry(self) -> ChangedWorkflow:
        """Run the failed part again, with what depends on it."""
        return await self._workflows.retry(self.id)

    async def rerun(self, *, from_step: str | AnyStep | None = None) -> AsyncWorkflowHandle:
        """Start a new workflow with the same steps; see AsyncWorkflows.rerun."""
        return await self._workflows.rerun(self.id, from_step=from_step)

    @overload
    async def result(self, step: Step[R]) -> R: ...
    @overload
    async def result(self, step: str) -> Any: ...
    async def result(self, step: Step[Any] | str) -> Any:
        """Return the result of a step that runs one job."""
        if isinstance(step, Step):
            return step.decode_result(await self._workflows.result(self.id, step.name))
        return await self._workflows.result(self.id, step)

    @overload
    async def results(self, step: StepSet[R]) -> Sequence[R]: ...
    @overload
    async def results(self, step: str) -> Sequence[Any]: ...
    async def results(self, step: StepSet[Any] | str) -> Sequence[Any]:
        """Return the results of all jobs of a set or a map, in order."""
        if isinstance(step, StepSet):
            values = await self._workflows.results(self.id, step.name)
            return [step.decode_result(value) for value in values]
        return await self._workflows.results(self.id, step)

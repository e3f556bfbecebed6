"""/v1/workflows and /v1/batches: graphs of jobs."""

from __future__ import annotations

from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
from starlette.requests import Request

from trunkline.errors import InvalidRequest
from trunkline.http.answers import Answer, page_link
from trunkline.http.caller import CallerSession
from trunkline.http.routing import Routes
from trunkline.http.v1.filters import Limit
from trunkline.http.v1.jobs import JobPage
from trunkline.http.v1.reasons import Reason, Text
from trunkline.model import FailedItem, JobState, WorkflowState, WorkflowStatus
from trunkline.model.codec import encode

__all__ = ["BATCHES", "ROUTES", "StartedAnswer"]

ROUTES: Final = Routes("workflows")
BATCHES: Final = Routes("batches")

_UNKNOWN: Final = {404: "There is no such workflow."}


class NewWorkflow(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A graph of jobs, as trunkline.start_workflow takes it.

    A step has `name`, `task` and, as needed, `payload`, `after`, `items` for a set of jobs or `map`
    for one job per item of an earlier result. The engine checks the graph.
    """

    name: Text
    steps: Annotated[list[dict[str, Any]], msgspec.Meta(min_length=1, max_length=10_000)]
    tenant: Text | None = None
    unique_key: Text | None = None
    correlation_id: Text | None = None
    # A time in ISO 8601, or a duration such as "2 hours".
    deadline: Text | None = None
    tags: list[Text] | None = None
    params: Any = None
    phases: list[dict[str, Any]] | None = None
    on_success: dict[str, Any] | None = None
    on_failure: dict[str, Any] | None = None
    on_end: dict[str, Any] | None = None


class BatchItem(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A job of a batch."""

    task: Text
    payload: dict[str, Any] = msgspec.field(default_factory=dict)
    queue: Text | None = None
    priority: int | None = None


class NewBatch(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Many jobs without dependencies, of any tasks, and callbacks when all have ended."""

    name: Text
    jobs: Annotated[list[BatchItem], msgspec.Meta(min_length=1, max_length=10_000)]
    tenant: Text | None = None
    unique_key: Text | None = None
    correlation_id: Text | None = None
    deadline: Text | None = None
    tags: list[Text] | None = None
    on_success: dict[str, Any] | None = None
    on_failure: dict[str, Any] | None = None
    on_end: dict[str, Any] | None = None


class StartedAnswer(msgspec.Struct, kw_only=True):
    """A workflow that was accepted. `created` is false if its key returned one that existed."""

    workflow_id: UUID
    created: bool
    state: str
    # Jobs that were stored; maps add theirs later.
    jobs: int
    href: str


class WorkflowQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which workflows; `before` is the last id of the page before."""

    name: Text | None = None
    state: list[WorkflowState] | None = None
    tenant: Text | None = None
    limit: Limit = 100
    before: UUID | None = None


class WorkflowPage(msgspec.Struct, kw_only=True):
    """Workflows with their progress, newest first. `next` is the next page's `before`."""

    workflows: list[WorkflowStatus]
    next: UUID | None


class WorkflowJobsQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which jobs of a workflow, from which on."""

    step: Text | None = None
    state: JobState | None = None
    start: Annotated[int, msgspec.Meta(ge=0, le=10_000_000)] = 0
    limit: Limit = 100


class FailedAnswer(msgspec.Struct, kw_only=True):
    """The first hundred dead letters of a workflow."""

    failed: list[FailedItem]


class Rerun(Reason, kw_only=True, forbid_unknown_fields=True):
    """How to start an ended workflow again."""

    # Completed steps that do not depend on this one keep their results.
    from_step: Text | None = None


class ChangedWorkflowAnswer(msgspec.Struct, kw_only=True):
    """What became of a request about a workflow, and how many jobs it concerned."""

    workflow_id: UUID
    outcome: str
    state: str | None
    jobs: int


@ROUTES.post("/v1/workflows", status=202)
async def start_workflow(
    session: CallerSession, request: Request, body: NewWorkflow
) -> Answer[StartedAnswer]:
    """Start a workflow: a graph of jobs that is stored at once and ends once."""
    document = _set_fields(body, request)
    return await _start(session, document)


@BATCHES.post("/v1/batches", status=202)
async def start_batch(
    session: CallerSession, request: Request, body: NewBatch
) -> Answer[StartedAnswer]:
    """Start a batch: jobs without dependencies. It is a workflow, and is read as one."""
    document = _set_fields(body, request)
    steps: dict[str, list[dict[str, Any]]] = {}
    for job in body.jobs:
        item = msgspec.to_builtins(job)
        steps.setdefault(item.pop("task"), []).append({"payload": {}, **item})
    del document["jobs"]
    document["kind"] = "batch"
    document["steps"] = [
        {"name": task, "task": task, "items": items} for task, items in steps.items()
    ]
    return await _start(session, document)


@ROUTES.get("/v1/workflows")
async def list_workflows(
    session: CallerSession, request: Request, query: WorkflowQuery
) -> Answer[WorkflowPage]:
    """List workflows with their progress, newest first."""
    found = await session.operator.workflows.list(
        name=query.name,
        states=query.state,
        tenant=query.tenant,
        limit=query.limit,
        before=query.before,
    )
    last = found[-1].id if len(found) == query.limit else None
    headers = {} if last is None else page_link(request, before=str(last))
    return Answer(WorkflowPage(workflows=found, next=last), headers)


@ROUTES.get("/v1/workflows/{workflow}", statuses=_UNKNOWN)
async def read_workflow(session: CallerSession, workflow: UUID) -> WorkflowStatus:
    """Return one workflow with its steps and its progress."""
    return await session.operator.workflows.get(workflow)


@ROUTES.get("/v1/workflows/{workflow}/jobs", statuses=_UNKNOWN)
async def list_workflow_jobs(
    session: CallerSession, request: Request, workflow: UUID, query: WorkflowJobsQuery
) -> Answer[JobPage]:
    """List jobs of a workflow in the order of its steps, without payloads and results."""
    # Otherwise an unknown workflow would be one without jobs.
    await session.operator.workflows.get(workflow)
    jobs = list(
        await session.operator.workflows.jobs(
            workflow, query.step, state=query.state, start=query.start, limit=query.limit
        )
    )
    following = str(query.start + query.limit) if len(jobs) == query.limit else None
    headers = {} if following is None else page_link(request, start=following)
    return Answer(JobPage(jobs=jobs, next=following), headers)


@ROUTES.get("/v1/workflows/{workflow}/failed", statuses=_UNKNOWN)
async def list_failed(session: CallerSession, workflow: UUID) -> FailedAnswer:
    """List the first hundred jobs of a workflow that are dead letters."""
    await session.operator.workflows.get(workflow)
    return FailedAnswer(failed=list(await session.operator.workflows.failed(workflow)))


@ROUTES.post("/v1/workflows/{workflow}/cancel", statuses=_UNKNOWN)
async def cancel_workflow(
    session: CallerSession, workflow: UUID, body: Reason
) -> ChangedWorkflowAnswer:
    """Cancel the jobs that have not started and ask the running ones to stop."""
    changed = await session.operator.workflows.cancel(workflow, reason=body.reason)
    return ChangedWorkflowAnswer(**changed._asdict())


@ROUTES.post("/v1/workflows/{workflow}/retry", statuses=_UNKNOWN)
async def retry_workflow(
    session: CallerSession, workflow: UUID, body: Reason
) -> ChangedWorkflowAnswer:
    """Run the failed part again, with what depends on it."""
    changed = await session.operator.workflows.retry(workflow, reason=body.reason)
    return ChangedWorkflowAnswer(**changed._asdict())


@ROUTES.post("/v1/workflows/{workflow}/rerun", status=202, statuses=_UNKNOWN)
async def rerun_workflow(
    session: CallerSession, workflow: UUID, body: Rerun
) -> Answer[StartedAnswer]:
    """Start an ended workflow again as a new one."""
    started = await session.operator.workflows.rerun(
        workflow, from_step=body.from_step, reason=body.reason
    )
    href = f"/v1/workflows/{started.workflow_id}"
    return Answer(StartedAnswer(**started._asdict(), href=href), {"Location": href})


@ROUTES.delete("/v1/workflows/{workflow}", statuses=_UNKNOWN)
async def delete_workflow(session: CallerSession, workflow: UUID) -> ChangedWorkflowAnswer:
    """Delete an ended workflow permanently, with its jobs and their results."""
    changed = await session.operator.workflows.delete(workflow)
    return ChangedWorkflowAnswer(**changed._asdict())


def _set_fields(body: NewWorkflow | NewBatch, request: Request) -> dict[str, Any]:
    values = {name: getattr(body, name) for name in body.__struct_fields__}
    if values["correlation_id"] is None:
        values["correlation_id"] = request.scope.get("trunkline.correlation_id")
    return {name: value for name, value in values.items() if value is not None}


async def _start(session: CallerSession, document: dict[str, Any]) -> Answer[StartedAnswer]:
    try:
        text = encode(document).decode()
    except TypeError as error:
        raise InvalidRequest(f"The graph cannot be stored: {error}") from error
    started = await session.client.start_document(text)
    href = f"/v1/workflows/{started.workflow_id}"
    return Answer(StartedAnswer(**started._asdict(), href=href), {"Location": href})

"""/v1/jobs: create, read and change jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from starlette.requests import Request

from trunkline.client import JobHandle, Options
from trunkline.client import Request as JobRequest
from trunkline.errors import InvalidRequest
from trunkline.http.answers import Answer, page_link
from trunkline.http.caller import CallerSession
from trunkline.http.routing import Routes
from trunkline.http.v1.filters import JobFilterQuery, as_filter
from trunkline.http.v1.reasons import Reason, Text
from trunkline.model import Explanation, Job, JobStep, JobUsage, StateCount
from trunkline.model.codec import encode

__all__ = ["ROUTES", "AcceptedJob", "NewJob", "idempotency_key"]

ROUTES = Routes("jobs")

Priority = Annotated[int, msgspec.Meta(ge=-50, le=49)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=315_360_000)]
Zoned = Annotated[datetime, msgspec.Meta(tz=True)]


class NewJob(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A job to run."""

    task: Text
    payload: dict[str, Any] = msgspec.field(default_factory=dict)
    queue: Text | None = None
    priority: Priority | None = None
    # Seconds until it may start, or the time.
    delay: Seconds | None = None
    run_at: Zoned | None = None
    # It is cancelled if it has not started by then.
    expires_at: Zoned | None = None
    tenant: Text | None = None
    # While a live job of the task has the key, that job is returned.
    unique_key: Text | None = None
    # As the header Idempotency-Key.
    idempotency_key: Text | None = None
    correlation_id: Text | None = None
    max_attempts: Annotated[int, msgspec.Meta(ge=1, le=1000)] | None = None
    tags: Annotated[list[Text], msgspec.Meta(max_length=100)] | None = None
    # What it takes of the limits of its task: requests, tokens, units.
    cost: dict[str, int] | None = None


class NewJobs(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Jobs to run, all or none."""

    jobs: Annotated[list[NewJob], msgspec.Meta(min_length=1, max_length=1000)]


class AcceptedJob(msgspec.Struct, kw_only=True):
    """A job that was accepted. `created` is false if a key returned one that already existed."""

    job_id: UUID
    created: bool
    state: str
    run_at: datetime
    # The path of the job.
    href: str


class AcceptedJobs(msgspec.Struct, kw_only=True):
    """Jobs that were accepted, in the order of the request."""

    jobs: list[AcceptedJob]


class JobPage(msgspec.Struct, kw_only=True):
    """Jobs, newest first, without payloads and results.

    A page may be short or empty although `next` is set. Pass `next` as `cursor` for the next page.
    """

    jobs: list[Job]
    next: str | None


class JobCounts(msgspec.Struct, kw_only=True):
    """How many jobs match, by state, each up to 10,000; with `more`, at least so many."""

    counts: list[StateCount]


class NewPriority(Reason, kw_only=True, forbid_unknown_fields=True):
    """Another priority for a waiting job."""

    priority: Priority


class Retry(Reason, kw_only=True, forbid_unknown_fields=True):
    """How to run a job again. With `payload`, a dead letter runs with another one."""

    # Whether recorded steps run again as well.
    fresh: bool = False
    payload: dict[str, Any] | None = None


class ChangedJobAnswer(msgspec.Struct, kw_only=True):
    """What became of a request about a job."""

    job_id: UUID
    outcome: str
    state: str


class ExplainedJob(msgspec.Struct, kw_only=True):
    """Why a job is not running."""

    reasons: list[Explanation]


class StepsOfJob(msgspec.Struct, kw_only=True):
    """The recorded steps of a job, and what it waits for."""

    steps: list[JobStep]


class UsageOfJob(msgspec.Struct, kw_only=True):
    """What a job used, by attempt and limit."""

    usage: list[JobUsage]


def idempotency_key(request: Request, given: str | None = None) -> str | None:
    """Return the key of the header Idempotency-Key, or of the body."""
    header = request.headers.get("idempotency-key")
    if header is None:
        return given
    if given not in {None, header}:
        raise InvalidRequest("The body and the header Idempotency-Key name different keys.")
    # In the standard's draft the header is a quoted string.
    key = header[1:-1] if len(header) > 2 and header[0] == header[-1] == '"' else header
    if not key.isprintable() or not 0 < len(key) <= 400:
        raise InvalidRequest("The header Idempotency-Key has no printable text of 400 characters.")
    return key


def _request(job: NewJob, request: Request, key: str | None) -> JobRequest[Any]:
    values = {
        field.name: getattr(job, field.name)
        for field in msgspec.structs.fields(NewJob)
        if field.name not in {"task", "payload", "expires_at"}
    }
    values["expires"] = job.expires_at
    values["idempotency_key"] = key
    if job.correlation_id is None:
        values["correlation_id"] = request.scope.get("trunkline.correlation_id")
    given = {name: value for name, value in values.items() if value is not None}
    try:
        # In order, so that a repeated request has the same hash whatever the order of its fields.
        payload = encode(job.payload, in_order=key is not None)
    except TypeError as error:
        raise InvalidRequest(f"The payload cannot be stored: {error}") from error
    return JobRequest(job.task, payload, Options().but(**given), lambda value: value)


def _accepted(handle: JobHandle[Any]) -> AcceptedJob:
    return AcceptedJob(
        job_id=handle.id,
        created=handle.created,
        state=handle.state,
        run_at=handle.run_at,
        href=f"/v1/jobs/{handle.id}",
    )


@ROUTES.post(
    "/v1/jobs",
    status=202,
    idempotent_by_key=True,
    statuses={409: "The idempotency key is that of another request."},
)
async def create_job(session: CallerSession, request: Request, body: NewJob) -> Answer[AcceptedJob]:
    """Accept a job. Workers run it; `Location` leads to its state."""
    key = idempotency_key(request, body.idempotency_key)
    (handle,) = await session.client.enqueue_many([_request(body, request, key)])
    accepted = _accepted(handle)
    return Answer(accepted, {"Location": accepted.href})


@ROUTES.post("/v1/jobs/many", status=202)
async def create_jobs(session: CallerSession, request: Request, body: NewJobs) -> AcceptedJobs:
    """Accept up to 1,000 jobs, all or none."""
    requests = [_request(job, request, job.idempotency_key) for job in body.jobs]
    handles = await session.client.enqueue_many(requests)
    return AcceptedJobs(jobs=[_accepted(handle) for handle in handles])


@ROUTES.get("/v1/jobs")
async def list_jobs(
    session: CallerSession, request: Request, query: JobFilterQuery
) -> Answer[JobPage]:
    """List jobs that match, newest first, without payloads and results."""
    found = await session.operator.jobs.find(
        as_filter(query), limit=query.limit, cursor=query.cursor
    )
    headers = {} if found.next is None else page_link(request, cursor=found.next)
    return Answer(JobPage(jobs=found.jobs, next=found.next), headers)


@ROUTES.get("/v1/jobs/counts")
async def count_jobs(session: CallerSession, query: JobFilterQuery) -> JobCounts:
    """Count jobs that match by state, each number up to 10,000."""
    return JobCounts(counts=await session.operator.jobs.count(as_filter(query)))


@ROUTES.get("/v1/jobs/{job}", statuses={404: "There is no such job."})
async def read_job(session: CallerSession, job: UUID) -> Job:
    """Return one job with its payload, its result and the errors of its attempts."""
    return await session.client.jobs.get(job)


@ROUTES.get("/v1/jobs/{job}/explanation", statuses={404: "There is no such job."})
async def explain_job(session: CallerSession, job: UUID) -> ExplainedJob:
    """Return why a job is not running, and until when."""
    return ExplainedJob(reasons=await session.operator.jobs.explain(job))


@ROUTES.get("/v1/jobs/{job}/steps", statuses={404: "There is no such job."})
async def read_steps(session: CallerSession, job: UUID) -> StepsOfJob:
    """Return the recorded steps of a job, and what it waits for."""
    return StepsOfJob(steps=await session.operator.jobs.steps(job))


@ROUTES.get("/v1/jobs/{job}/usage", statuses={404: "There is no such job."})
async def read_usage_of_job(session: CallerSession, job: UUID) -> UsageOfJob:
    """Return what a job used, by attempt and limit."""
    return UsageOfJob(usage=list(await session.operator.jobs.usage(job)))


@ROUTES.post("/v1/jobs/{job}/cancel", statuses={404: "There is no such job."})
async def cancel_job(session: CallerSession, job: UUID, body: Reason) -> ChangedJobAnswer:
    """Cancel a waiting job at once, or ask the worker of a running one to stop."""
    changed = await session.operator.jobs.cancel(job, reason=body.reason)
    return ChangedJobAnswer(**changed._asdict())


@ROUTES.post(
    "/v1/jobs/{job}/retry",
    status=202,
    statuses={404: "There is no such job.", 409: "The job is still alive."},
)
async def retry_job(session: CallerSession, job: UUID, body: Retry) -> Answer[AcceptedJob]:
    """Run a dead letter again under its id, or a finished job as a new one."""
    if body.payload is not None:
        if body.fresh:
            raise InvalidRequest("fresh and payload exclude each other.")
        answer = await session.operator.dead.retry_edited(job, body.payload, reason=body.reason)
    else:
        answer = await session.operator.jobs.retry(job, fresh=body.fresh, reason=body.reason)
    href = f"/v1/jobs/{answer.job_id}"
    return Answer(AcceptedJob(**answer._asdict(), href=href), {"Location": href})


@ROUTES.post("/v1/jobs/{job}/priority", statuses={404: "There is no such job."})
async def reprioritise_job(
    session: CallerSession, job: UUID, body: NewPriority
) -> ChangedJobAnswer:
    """Change the priority of a waiting job and move it to the end of that priority."""
    changed = await session.operator.jobs.reprioritise(job, body.priority, reason=body.reason)
    return ChangedJobAnswer(**changed._asdict())


@ROUTES.post("/v1/jobs/{job}/acknowledge", statuses={404: "There is no such job."})
async def acknowledge_job(session: CallerSession, job: UUID, body: Reason) -> ChangedJobAnswer:
    """Mark a dead letter as seen; its retention starts then."""
    changed = await session.operator.dead.acknowledge(job, reason=body.reason)
    return ChangedJobAnswer(**changed._asdict())


@ROUTES.delete("/v1/jobs/{job}", statuses={404: "There is no such job."})
async def discard_job(session: CallerSession, job: UUID) -> ChangedJobAnswer:
    """Delete a dead letter permanently."""
    changed = await session.operator.jobs.discard(job)
    return ChangedJobAnswer(**changed._asdict())

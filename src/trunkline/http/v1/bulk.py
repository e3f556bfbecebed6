"""/v1/jobs/bulk and /v1/dead: changes of many jobs, one batch per request, and dead letters."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Final, Literal
from uuid import UUID

import msgspec
from starlette.requests import Request

from trunkline.errors import InvalidRequest
from trunkline.http.answers import Answer, page_link
from trunkline.http.caller import CallerSession
from trunkline.http.routing import Routes
from trunkline.http.v1.filters import FilterBody, JobFilterQuery, as_filter
from trunkline.http.v1.jobs import JobPage, Priority
from trunkline.http.v1.reasons import Reason, Text
from trunkline.model import BulkProgress, DeadLetterGroup, Job, StateCount
from trunkline.operate import AsyncOperator

__all__ = ["ROUTES"]

ROUTES: Final = Routes("bulk changes and dead letters")

Batch = Annotated[int, msgspec.Meta(ge=1, le=1000, description="Jobs of one request.")]


class BulkBody(Reason, kw_only=True, forbid_unknown_fields=True):
    """A change of all jobs that match, one batch per request, newest jobs first.

    Repeat the request with `cursor` until `next` is null. A filter that names nothing but states is
    refused unless `all_jobs` is true.
    """

    action: Literal["acknowledge", "cancel", "discard", "reprioritise", "retry"]
    filter: FilterBody
    # For reprioritise.
    priority: Priority | None = None
    batch: Batch = 1000
    cursor: Text | None = None
    all_jobs: bool = False
    # Change nothing; return what would change.
    dry_run: bool = False


class BulkAnswer(msgspec.Struct, kw_only=True):
    """What a batch did, or with `dry_run` what all batches would do."""

    jobs: int = 0
    outcomes: dict[str, int] = msgspec.field(default_factory=dict)
    job_ids: list[UUID] = msgspec.field(default_factory=list)
    # The cursor of the next batch; null after the last one.
    next: str | None = None
    # Only with dry_run: how many jobs would change by state, and the newest of them.
    counts: list[StateCount] | None = None
    sample: list[Job] | None = None


class GroupsAnswer(msgspec.Struct, kw_only=True):
    """Dead letters by error, the largest group first."""

    groups: list[DeadLetterGroup]


class ReplayBody(Reason, kw_only=True, forbid_unknown_fields=True):
    """Dead letters to run again, one batch per request; as a bulk retry of dead jobs."""

    filter: FilterBody
    batch: Batch = 1000
    cursor: Text | None = None
    all_jobs: bool = False


@ROUTES.post("/v1/jobs/bulk")
async def change_jobs(session: CallerSession, body: BulkBody) -> BulkAnswer:
    """Cancel, retry, reprioritise, discard or acknowledge jobs that match, a batch at a time."""
    if (body.priority is None) is (body.action == "reprioritise"):
        raise InvalidRequest("priority belongs to the action reprioritise, which needs it.")
    operator = session.operator
    if body.dry_run:
        preview = await operator.jobs.preview(body.action, as_filter(body.filter))
        total = sum(count.jobs for count in preview.counts)
        return BulkAnswer(jobs=total, counts=preview.counts, sample=preview.sample)
    return await _first(_batches(operator, body))


@ROUTES.get("/v1/dead")
async def list_dead(
    session: CallerSession, request: Request, query: JobFilterQuery
) -> Answer[JobPage]:
    """List dead letters that match, newest first."""
    found = await session.operator.dead.find(
        as_filter(query), limit=query.limit, cursor=query.cursor
    )
    headers = {} if found.next is None else page_link(request, cursor=found.next)
    return Answer(JobPage(jobs=found.jobs, next=found.next), headers)


@ROUTES.get("/v1/dead/groups")
async def list_groups(session: CallerSession, query: JobFilterQuery) -> GroupsAnswer:
    """List dead letters grouped by error, the largest group first."""
    groups = await session.operator.dead.groups(as_filter(query), limit=query.limit)
    return GroupsAnswer(groups=groups)


@ROUTES.post("/v1/dead/replay")
async def replay_dead(session: CallerSession, body: ReplayBody) -> BulkAnswer:
    """Run dead letters that match again, a batch at a time."""
    chosen = msgspec.structs.replace(body.filter, state=["dead"])
    return await _first(
        session.operator.jobs.retry_matching(
            as_filter(chosen),
            reason=body.reason,
            batch=body.batch,
            cursor=body.cursor,
            all_jobs=body.all_jobs,
        )
    )


def _batches(operator: AsyncOperator, body: BulkBody) -> AsyncIterator[BulkProgress]:
    chosen = as_filter(body.filter)
    if body.action == "reprioritise":
        assert body.priority is not None  # noqa: S101 - see change_jobs
        return operator.jobs.reprioritise_matching(
            chosen,
            body.priority,
            reason=body.reason,
            batch=body.batch,
            cursor=body.cursor,
            all_jobs=body.all_jobs,
        )
    change = {
        "acknowledge": operator.dead.acknowledge_matching,
        "cancel": operator.jobs.cancel_matching,
        "discard": operator.jobs.discard_matching,
        "retry": operator.jobs.retry_matching,
    }[body.action]
    return change(
        chosen,
        reason=body.reason,
        batch=body.batch,
        cursor=body.cursor,
        all_jobs=body.all_jobs,
    )


async def _first(batches: AsyncIterator[BulkProgress]) -> BulkAnswer:
    """Run one batch: a request that changed a million jobs would outlive its client."""
    progress = await anext(batches)
    return BulkAnswer(
        jobs=progress.jobs,
        outcomes=dict(progress.outcomes),
        job_ids=progress.job_ids,
        next=progress.cursor,
    )

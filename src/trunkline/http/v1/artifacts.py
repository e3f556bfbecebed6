"""/v1/artifacts: files of completed jobs, and /v1/events: what jobs wait for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from trunkline.artifacts import AsyncArchive
from trunkline.errors import InvalidRequest
from trunkline.http.answers import Answer, page_link
from trunkline.http.caller import CallerSession
from trunkline.http.routing import Routes
from trunkline.http.v1.filters import Limit
from trunkline.http.v1.reasons import Text
from trunkline.model import Artifact, StorageStatus

__all__ = ["EVENTS", "ROUTES"]

ROUTES: Final = Routes("artifacts")
EVENTS: Final = Routes("events")

_UNKNOWN: Final = {404: "There is no such artifact.", 410: "It was deleted."}
_ZIP: Final = {206: "Some files are gone.", 404: "There are no files.", 410: "All are gone."}
_LONGEST: Final = 7 * 24 * 3600


class ArtifactQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which artifacts; `after` is the last id of the page before."""

    job: UUID | None = None
    workflow: UUID | None = None
    kind: Text | None = None
    name: Text | None = None
    # Also those that were deleted.
    deleted: bool = False
    limit: Limit = 100
    after: UUID | None = None


class ArtifactPage(msgspec.Struct, kw_only=True):
    """Artifacts, oldest first. `next` is the next page's `after`."""

    artifacts: list[Artifact]
    next: UUID | None


class NewLink(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How long a link works, in seconds."""

    expires_in: Annotated[int, msgspec.Meta(ge=1, le=_LONGEST)] = 3600


class LinkAnswer(msgspec.Struct, kw_only=True):
    """A link that works without signing in."""

    url: str
    expires_at: datetime


class DeletedAnswer(msgspec.Struct, kw_only=True):
    """Whether the artifact was deleted by this request."""

    deleted: bool


class StorageAnswer(msgspec.Struct, kw_only=True):
    """What the artifacts of each tenant take, the largest first."""

    storage: list[StorageStatus]


class NewEvent(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """An event for a job or for a key. The first event of a name wins."""

    name: Text
    payload: Any = None
    job: UUID | None = None
    key: Text | None = None
    # With it, the same event with another payload is refused.
    event_id: Text | None = None
    tenant: Text | None = None


class SentAnswer(msgspec.Struct, kw_only=True):
    """What sending an event did: `delivered`, `stored` or `already`."""

    outcome: str
    resumed: int
    sent_at: datetime


@ROUTES.get("/v1/artifacts")
async def list_artifacts(
    session: CallerSession, request: Request, query: ArtifactQuery
) -> Answer[ArtifactPage]:
    """List artifacts, oldest first."""
    values = {name: getattr(query, name) for name in query.__struct_fields__}
    found = list(await session.operator.artifacts.list(**values))
    last = found[-1].id if len(found) == query.limit else None
    headers = {} if last is None else page_link(request, after=str(last))
    return Answer(ArtifactPage(artifacts=found, next=last), headers)


@ROUTES.get("/v1/artifacts/{artifact}", statuses=_UNKNOWN)
async def read_artifact(session: CallerSession, artifact: UUID) -> Artifact:
    """Return what is known of one artifact."""
    return await session.operator.artifacts.get(artifact)


@ROUTES.get(
    "/v1/artifacts/{artifact}/content", status=307, statuses=_UNKNOWN, media_type="text/plain"
)
async def read_content(session: CallerSession, artifact: UUID) -> Response:
    """Redirect to the content, by a link that works for five minutes."""
    url = await session.operator.artifacts.link(artifact, expires_in=300)
    return RedirectResponse(url, headers={"Cache-Control": "no-store"})


@ROUTES.post("/v1/artifacts/{artifact}/link", statuses=_UNKNOWN)
async def link_artifact(session: CallerSession, artifact: UUID, body: NewLink) -> LinkAnswer:
    """Return a link to the content that works without signing in."""
    url = await session.operator.artifacts.link(artifact, expires_in=body.expires_in)
    return LinkAnswer(url=url, expires_at=datetime.now(UTC) + timedelta(seconds=body.expires_in))


@ROUTES.delete("/v1/artifacts/{artifact}", statuses=_UNKNOWN)
async def delete_artifact(session: CallerSession, artifact: UUID) -> DeletedAnswer:
    """Delete an artifact. A worker removes the file."""
    return DeletedAnswer(deleted=await session.operator.artifacts.delete(artifact))


@ROUTES.get("/v1/jobs/{job}/archive", statuses=_ZIP, media_type="application/zip")
async def zip_job(session: CallerSession, job: UUID) -> Response:
    """Return the files of a job as a ZIP archive."""
    await session.client.jobs.get(job)
    return _archived(await session.operator.artifacts.zip(job=job), f"{job}.zip")


@ROUTES.get("/v1/workflows/{workflow}/archive", statuses=_ZIP, media_type="application/zip")
async def zip_workflow(session: CallerSession, workflow: UUID) -> Response:
    """Return the files of a workflow as a ZIP archive."""
    await session.operator.workflows.get(workflow)
    archive = await session.operator.artifacts.zip(workflow=workflow)
    return _archived(archive, f"{workflow}.zip")


@ROUTES.get("/v1/storage")
async def read_storage(session: CallerSession) -> StorageAnswer:
    """Return what the artifacts of each tenant take, the largest first."""
    return StorageAnswer(storage=await session.operator.artifacts.storage())


@EVENTS.post("/v1/events", statuses={409: "It was sent before with another payload."})
async def send_event(session: CallerSession, body: NewEvent) -> SentAnswer:
    """Send an event to a job that waits for it, or to a key."""
    if (body.job is None) is (body.key is None):
        raise InvalidRequest("An event has either a job or a key.")
    sent = await session.operator.events.send(
        body.name,
        body.payload,
        job=body.job,
        key=body.key,
        event_id=body.event_id,
        tenant=body.tenant,
    )
    return SentAnswer(**sent._asdict())


def _archived(archive: AsyncArchive, name: str) -> Response:
    contents = archive.contents
    return StreamingResponse(
        _closing(archive),
        status_code=contents.status,
        headers={
            "Content-Type": "application/zip",
            "Content-Disposition": f'attachment; filename="{name}"',
            "Cache-Control": "no-store",
            "X-Files-Included": str(contents.included),
            "X-Files-Missing": str(contents.missing + contents.expired + contents.deleted),
        },
    )


async def _closing(archive: AsyncArchive) -> AsyncIterator[bytes]:
    try:
        async for chunk in archive:
            yield chunk
    finally:
        await archive.aclose()

"""The source's HTTP API, mounted under /api/v1/export, and the page that uses it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from importlib.resources import files
from typing import Any, Final, LiteralString
from uuid import UUID

import anyio
from msgspec.json import encode
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from trunkline.errors import FileMissing
from trunkline.http import Answer, CallerSession, Routes, resources_of
from trunkline_profiles.exports import stream
from trunkline_profiles.exports.refusals import (
    ERRORS,
    InvalidRequest,
    UnknownBatch,
    UnknownExport,
    UnknownJob,
)
from trunkline_profiles.requests import Asker, as_id

__all__ = ["BASE", "LINK_SECONDS", "ROUTES"]

BASE: Final = "/api/v1/export"
LINK_SECONDS: Final = 3600
# Pages of the cleanup that one request does; the schedule does the rest.
_PAGES: Final = 20
_PAGE: Final = 500
_PDF: Final = "application/pdf"
_NO_STORE: Final = {"Cache-Control": "no-store"}
_HISTORY: Final = """
select
  h.id, h.document_id, h.document_version, h.format, h.template_slug, h.file_name, h.file_size,
  h.page_count, h.download_count, h.created_at, h.expires_at
from exports.list_history(%s) as h
"""
_FIELDS: Final = (
    *("id", "documentId", "documentVersion", "format", "templateSlug", "fileName", "fileSize"),
    *("pageCount", "downloadCount", "createdAt", "expiresAt"),
)

_ask = Asker(ERRORS)


def _file(name: str, media_type: str) -> Route:
    """A static file of the page. It has no data, so it needs no caller."""
    content = (files(__package__) / "web" / name).read_bytes()
    headers = {
        "Cache-Control": "no-cache",
        "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'",
    }

    async def answer(_request: Request) -> Response:
        return Response(content, media_type=media_type, headers=headers)

    return Route("/exports/" if name == "index.html" else f"/exports/{name}", answer)


ROUTES = Routes(
    "exports",
    _file("index.html", "text/html; charset=utf-8"),
    _file("page.js", "text/javascript; charset=utf-8"),
    _file("page.css", "text/css; charset=utf-8"),
)


@ROUTES.post(f"{BASE}/pdf", status=202, statuses={404: "no such document", 507: "storage full"})
async def create(session: CallerSession, body: Any) -> Answer[Any]:
    """Export one document as PDF, or return the live export that is the same."""
    fields = _object(body, {"documentId", "templateSlug", "options"})
    document = _document(fields.get("documentId"))
    options = _options(fields)
    query: LiteralString = "select job_id from exports.create_export_job(%s, %s::jsonb)"
    job = await _ask.value(session, query, document, _text(options))
    return _data({"jobId": job}, Location=f"{BASE}/job/{job}")


@ROUTES.get(f"{BASE}/job/{{job}}", statuses={404: "no such export"})
async def read(session: CallerSession, request: Request, job: str) -> Answer[Any]:
    """Read an export with its progress; its link is signed now, for an hour."""
    return _data(await _job(session, request, job))


@ROUTES.delete(f"{BASE}/job/{{job}}", statuses={404: "no such export", 409: "already finished"})
async def cancel(session: CallerSession, job: str) -> Answer[Any]:
    """Cancel an export; one that runs stops at its next step."""
    found = _id(job, UnknownJob)
    outcome = await _ask.value(session, "select exports.cancel_job(%s)", found)
    message = "Export cancelled" if outcome == "cancelled" else "Cancellation requested"
    return _data({"message": message, "status": outcome})


@ROUTES.get(f"{BASE}/job/{{job}}/stream", media_type="text/event-stream")
async def follow(session: CallerSession, request: Request, job: str) -> Response:
    """Follow an export as Server-Sent Events."""

    async def state() -> dict[str, Any]:
        return await _job(session, request, job)

    return await _followed(session, request, state)


@ROUTES.post(f"{BASE}/batch", status=202, statuses={404: "no such document", 507: "storage full"})
async def create_batch(session: CallerSession, body: Any) -> Answer[Any]:
    """Export up to ten documents, all or none."""
    fields = _object(body, {"documentIds", "templateSlug", "options"})
    query: LiteralString = "select exports.create_export_batch(%s::jsonb, %s::jsonb)"
    documents = _text(fields.get("documentIds"))
    made = await _ask.value(session, query, documents, _text(_options(fields)))
    location = f"{BASE}/batch/{made['batchId']}"
    return _data({"batchId": made["batchId"], "jobs": made["jobs"]}, Location=location)


@ROUTES.get(f"{BASE}/batch/{{batch}}", statuses={404: "no such batch"})
async def read_batch(session: CallerSession, batch: str) -> Answer[Any]:
    """Read a batch with the state of each export."""
    return _data(await _batch(session, batch))


@ROUTES.get(f"{BASE}/batch/{{batch}}/stream", media_type="text/event-stream")
async def follow_batch(session: CallerSession, request: Request, batch: str) -> Response:
    """Follow a batch as Server-Sent Events."""

    async def state() -> dict[str, Any]:
        return await _batch(session, batch)

    return await _followed(session, request, state)


@ROUTES.get(
    f"{BASE}/batch/{{batch}}/download",
    media_type="application/zip",
    statuses={206: "some exports are not complete", 404: "nothing to load", 410: "expired"},
)
async def download_batch(session: CallerSession, request: Request, batch: str) -> Any:
    """Load the files of a batch as ZIP; 206 with a list while some are not complete."""
    found = await _ask.value(session, "select exports.batch_files(%s)", _id(batch, UnknownBatch))
    whole = found["completedCount"] == found["totalCount"]
    if not whole and request.query_params.get("partial") != "true":
        names = ("completedCount", "totalCount", "completedJobs")
        return Answer({"data": {name: found[name] for name in names}}, status=206)
    # The database has just said that these are the caller's.
    artifacts = resources_of(request).server.operator.artifacts
    chosen = [await artifacts.get(one) for one in found["artifacts"]]
    archive = await artifacts.zip(chosen)
    headers = {
        **_NO_STORE,
        "Content-Disposition": f'attachment; filename="resumes-{as_id(batch)}.zip"',
    }
    return StreamingResponse(_closing(archive), 200, headers, "application/zip")


@ROUTES.get(
    f"{BASE}/download/{{history}}",
    media_type=_PDF,
    statuses={302: "a link for an hour", 404: "no such export", 410: "expired"},
)
async def download(session: CallerSession, request: Request, history: str) -> Response:
    """Count a download, and redirect to a link that is valid for an hour."""
    found = _id(history, UnknownExport)
    query: LiteralString = "select h.file_path, h.file_name from exports.read_export(%s) as h"
    ((path, name),) = await _ask(session, query, found)
    store = resources_of(request).store
    try:
        await store.head(path)
    except FileMissing as error:
        raise UnknownExport("the file of the export is gone", hint=UnknownExport.hint) from error
    if request.method == "GET":
        await _ask(session, "select exports.count_download(%s)", found)
    url = await store.sign(path, expires_in=LINK_SECONDS, content_type=_PDF, filename=name)
    return RedirectResponse(url, 302, _NO_STORE)


@ROUTES.get(f"{BASE}/history")
async def history(session: CallerSession) -> Answer[Any]:
    """List the caller's exports, newest first."""
    rows = await _ask(session, _HISTORY, 100)
    return _data([dict(zip(_FIELDS, row, strict=True)) for row in rows])


@ROUTES.delete(f"{BASE}/history/{{history}}", statuses={404: "no such export"})
async def delete(session: CallerSession, history: str) -> Answer[Any]:
    """Delete an export with its file; its space is free at once."""
    found = _id(history, UnknownExport)
    await _ask(session, "select exports.delete_export(%s)", found)
    return _data({"message": "Export deleted"})


@ROUTES.post(f"{BASE}/cleanup", statuses={403: "administrators only"})
async def clean_up(session: CallerSession) -> Answer[Any]:
    """Remove expired exports now; for administrators."""
    total = 0
    for _ in range(_PAGES):
        deleted = await _ask.value(session, "select exports.run_cleanup(%s)", _PAGE)
        total += deleted
        if deleted < _PAGE:
            break
    return _data({"deleted": total})


@ROUTES.get(f"{BASE}/documents")
async def documents(session: CallerSession) -> Answer[Any]:
    """List the caller's documents, for the page."""
    query: LiteralString = (
        "select d.id, d.title, d.version from exports.documents as d"
        " order by d.created_at, d.id limit 100"
    )
    names = ("id", "title", "version")
    return _data([dict(zip(names, row, strict=True)) for row in await _ask(session, query)])


async def _job(session: CallerSession, request: Request, job: str) -> dict[str, Any]:
    """An export as clients see it, with a link if there is a file."""
    found = await _ask.value(session, "select exports.get_job_status(%s)", _id(job, UnknownJob))
    if found is None:
        raise UnknownJob(f"there is no export {job}", hint=UnknownJob.hint)
    file, url = found["file"], None
    if file is not None:
        url = await resources_of(request).store.sign(
            file["path"], expires_in=LINK_SECONDS, content_type=_PDF, filename=file["name"]
        )
    names = ("id", "status", "progress")
    more = {name: found[name] for name in ("error", "historyId", "documentId", "batchId")}
    return {**{name: found[name] for name in names}, "resultUrl": url, **more}


async def _batch(session: CallerSession, batch: str) -> dict[str, Any]:
    found: dict[str, Any] | None = await _ask.value(
        session, "select exports.get_batch(%s)", _id(batch, UnknownBatch)
    )
    if found is None:
        raise UnknownBatch(f"there is no batch {batch}", hint=UnknownBatch.hint)
    done = found["status"] in {"completed", "partial"}
    return found | {"resultUrl": f"{BASE}/batch/{batch}/download" if done else None}


async def _followed(
    session: CallerSession, request: Request, read_state: Callable[[], Awaitable[dict[str, Any]]]
) -> Response:
    """The stream of what can be read; 404 if nothing can, 204 for a client that saw the end."""
    first = await read_state()
    if stream.is_final(first, request.headers.get("last-event-id")):
        return Response(status_code=204)
    return StreamingResponse(
        _events(session, first, read_state), 200, stream.HEADERS, "text/event-stream"
    )


async def _events(
    session: CallerSession,
    state: Mapping[str, Any] | None,
    read_state: Callable[[], Awaitable[dict[str, Any]]],
) -> AsyncIterator[bytes]:
    """Events until the last one. When the client leaves, the server ends this generator."""
    follower = stream.Follower(time.monotonic())
    expires = session.caller.expires_at
    while True:
        for part in follower.step(state, time.monotonic()):
            yield part
        if follower.is_over or (expires is not None and expires.timestamp() <= time.time()):
            return
        await anyio.sleep(stream.CHECK_SECONDS)
        try:
            state = await read_state()
        except (UnknownJob, UnknownBatch):
            state = None


async def _closing(archive: Any) -> AsyncIterator[bytes]:
    try:
        async for chunk in archive:
            yield chunk
    finally:
        await archive.aclose()


def _data(value: Any, **headers: str) -> Answer[Any]:
    return Answer({"data": value}, headers)


def _object(body: Any, known: set[str]) -> Mapping[str, Any]:
    if not isinstance(body, dict):
        raise _invalid({"body": "must be an object"})
    if unknown := sorted(body.keys() - known):
        raise _invalid({name[:100]: "is not a known field" for name in unknown[:20]})
    return body


def _options(fields: Mapping[str, Any]) -> Any:
    """The options with the template, which a single export names outside its options."""
    options = fields.get("options")
    options = {} if options is None else options
    template = fields.get("templateSlug")
    if template is None or not isinstance(options, dict):
        return options
    return {"templateSlug": template} | options


def _document(value: Any) -> UUID:
    found = as_id(value) if isinstance(value, str) else None
    if found is None:
        raise _invalid({"documentId": "must be an id"})
    return found


def _id(text: str, error: type[UnknownJob | UnknownBatch | UnknownExport]) -> UUID:
    """What is not an id is the id of nothing."""
    found = as_id(text)
    if found is None:
        raise error("there is nothing with this id", hint=error.hint)
    return found


def _invalid(fields: Mapping[str, str]) -> InvalidRequest:
    return InvalidRequest(
        "the request is not valid", hint=InvalidRequest.hint, detail={"fields": dict(fields)}
    )


def _text(value: Any) -> str:
    return encode(value).decode()

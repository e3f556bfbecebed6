"""The source's HTTP API: orders, their progress with an ETag, cancellation, and live events."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, LiteralString
from uuid import UUID

import anyio
from msgspec.json import encode
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from trunkline.errors import FileHeadersUnsafe
from trunkline.http import Answer, CallerSession, Routes, resources_of
from trunkline_profiles.requests import Asker, as_id
from trunkline_profiles.studio.api import LINK_SECONDS, tag_of
from trunkline_profiles.studio.refusals import ERRORS, InvalidParams, UnknownJob

__all__ = ["BASE", "ROUTES"]

BASE: Final = "/api/jobs"
_FINAL: Final = frozenset({"complete", "failed", "cancelled"})
# Seconds between two looks at the state of a stream, between two comments, and until it ends.
_CHECK: Final = 0.5
_COMMENT: Final = 15.0
_LONGEST: Final = 60.0
_START: Final[LiteralString] = "select job_id, status from studio.start_job(%s, %s::jsonb, %s)"

ROUTES = Routes("studio")
_ask = Asker(ERRORS)


@ROUTES.post(f"{BASE}/start", status=202, statuses={409: "the key belongs to another order"})
async def start(session: CallerSession, request: Request, body: Any) -> Answer[Any]:
    """Start a job; the same Idempotency-Key of a user returns the same job."""
    if not isinstance(body, dict):
        raise InvalidParams("the body is not an object", hint=InvalidParams.hint)
    if unknown := sorted(body.keys() - {"type", "params"}):
        raise InvalidParams(f"{unknown[0][:100]!r} is not a field", hint=InvalidParams.hint)
    key = request.headers.get("idempotency-key")
    params = encode(body.get("params")).decode()
    kind = body.get("type")
    rows = await _ask(session, _START, kind if isinstance(kind, str) else None, params, key)
    job, status = rows[0]
    return Answer({"id": job, "status": status}, {"Location": f"{BASE}/{job}"})


@ROUTES.get(f"{BASE}/{{job}}", statuses={304: "unchanged", 404: "no such job"})
async def read(session: CallerSession, request: Request, job: str) -> Answer[Any] | Response:
    """Read a job with its progress and the files so far; links are signed now."""
    found = await _read(session, job)
    tag = tag_of(found, time.time())
    if tag in {part.strip() for part in request.headers.get("if-none-match", "").split(",")}:
        return Response(status_code=304, headers={"ETag": tag})
    return Answer(await _public(found, request), {"ETag": tag})


@ROUTES.post(f"{BASE}/{{job}}/cancel", status=202, statuses={404: "no such job"})
async def cancel(session: CallerSession, job: str) -> dict[str, Any]:
    """Cancel a job: waiting tasks at once, running ones at their next heartbeat."""
    outcome = await _ask.value(session, "select studio.cancel_job(%s)", _id(job))
    return {"id": job, "outcome": outcome}


@ROUTES.get(f"{BASE}/{{job}}/stream", media_type="text/event-stream")
async def follow(session: CallerSession, request: Request, job: str) -> Response:
    """Follow a job as Server-Sent Events: its state at once, then each change."""
    first = await _read(session, job)
    return StreamingResponse(
        _events(session, request, job, first),
        200,
        {
            "Cache-Control": "no-cache",
            "X-Accel-Buffering": "no",
        },
        "text/event-stream",
    )


async def _events(
    session: CallerSession, request: Request, job: str, found: dict[str, Any]
) -> AsyncIterator[bytes]:
    """Events until the job has ended, or for a minute. The client comes back then."""
    began = sent_at = time.monotonic()
    seen: Mapping[str, Any] | None = None
    while True:
        now = time.monotonic()
        if found != seen:
            seen, sent_at = found, now
            is_final = found["status"] in _FINAL
            name = found["status"] if is_final else "progress"
            data = json.dumps(await _public(found, request), default=str)
            yield f"event: {name}\ndata: {data}\n\n".encode()
            if is_final:
                return
        elif now - sent_at >= _COMMENT:
            sent_at = now
            yield b": still here\n\n"
        if now - began >= _LONGEST:
            yield b'event: timeout\ndata: {"message": "Still working. Connect again."}\n\n'
            return
        await anyio.sleep(_CHECK)
        try:
            found = await _read(session, job)
        except UnknownJob:
            return


async def _read(session: CallerSession, job: str) -> dict[str, Any]:
    found: dict[str, Any] | None = await _ask.value(session, "select studio.read_job(%s)", _id(job))
    if found is None:
        raise UnknownJob(f"there is no job {job}", hint=UnknownJob.hint)
    return found


async def _public(found: Mapping[str, Any], request: Request) -> dict[str, Any]:
    """The job as clients see it: a link for each file, and no path."""
    artifacts = []
    for one in found["artifacts"]:
        if "path" not in one:
            # The older system made its links itself.
            artifacts.append(one)
            continue
        names = ("type", "name", "duration")
        url = await _link(one, request)
        artifacts.append({**{name: one.get(name) for name in names}, "url": url})
    return {**found, "artifacts": artifacts}


async def _link(file: Mapping[str, Any], request: Request) -> str | None:
    """A link, or none if the file was uploaded in a way that is not safe for browsers."""
    try:
        return await resources_of(request).store.sign(
            file["path"],
            expires_in=LINK_SECONDS,
            content_type=file["contentType"],
            filename=file["name"],
        )
    except FileHeadersUnsafe:
        return None


def _id(text: str) -> UUID:
    """What is not an id is the id of nothing."""
    found = as_id(text)
    if found is None:
        raise UnknownJob("there is nothing with this id", hint=UnknownJob.hint)
    return found

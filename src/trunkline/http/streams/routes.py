"""The routes of live events."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any, Final
from uuid import UUID

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trunkline.client.hub import Kind
from trunkline.db.calls.live import live_jobs, live_workflows
from trunkline.errors import UnknownJob, UnknownWorkflow
from trunkline.http.caller import Caller, CallerSession
from trunkline.http.routing import Routes
from trunkline.http.sessions import resources_of, session_for, session_of
from trunkline.http.streams.registry import Streams
from trunkline.http.streams.response import EventStream, event_bytes, remaining
from trunkline.model import JobEvents, LiveJob, LiveWorkflow, WorkflowEvents

__all__ = ["ROUTES"]

_MODULE: Final = (files("trunkline.http.streams") / "trunkline.js").read_bytes()


async def _module(_request: Request) -> Response:
    headers = {"Cache-Control": "public, max-age=3600"}
    return Response(_MODULE, media_type="text/javascript; charset=utf-8", headers=headers)


ROUTES: Final = Routes("events", Route("/v1/events.js", _module, methods=["GET"]))

_STATUSES: Final = {
    204: "The stream has ended, and the client has received its last event.",
    401: "There are no credentials, or they or the ticket are not valid.",
    403: "The role of the caller may not do this.",
    404: "There is no such object.",
    429: "The tenant has too many open streams.",
    503: "The server has too many open streams.",
}


class StreamQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How to open a stream."""

    # In place of the header Authorization, which EventSource of a browser cannot send.
    ticket: str | None = None
    # In place of the header Last-Event-ID, for a new EventSource.
    after: str | None = None


class StreamTicket(msgspec.Struct, frozen=True):
    """A ticket for one stream: open `href` before it expires."""

    ticket: str
    href: str
    expires_at: datetime


@ROUTES.post("/v1/jobs/{job}/events/ticket", status=201, statuses={404: "There is no such job."})
async def job_ticket(session: CallerSession, request: Request, job: UUID) -> StreamTicket:
    """Issue a ticket with which a browser opens the stream of a job."""
    await _visible(session, "job", job)
    return _ticket(request, session.caller, f"/v1/jobs/{job}/events")


@ROUTES.post(
    "/v1/workflows/{workflow}/events/ticket",
    status=201,
    statuses={404: "There is no such workflow."},
)
async def workflow_ticket(session: CallerSession, request: Request, workflow: UUID) -> StreamTicket:
    """Issue a ticket with which a browser opens the stream of a workflow."""
    await _visible(session, "workflow", workflow)
    return _ticket(request, session.caller, f"/v1/workflows/{workflow}/events")


@ROUTES.post("/v1/events/ticket", status=201)
async def activity_ticket(session: CallerSession, request: Request) -> StreamTicket:
    """Issue a ticket with which a browser opens the stream of all activity."""
    await session.operator.activity.recent(0)
    return _ticket(request, session.caller, "/v1/events")


@ROUTES.get(
    "/v1/jobs/{job}/events", public=True, media_type="text/event-stream", statuses=_STATUSES
)
async def job_events(request: Request, job: UUID, query: StreamQuery) -> Response:
    """Stream the state of a job, its changes, the text that it emits, and its end."""
    session = await _signed_in(request, query)
    state = await _visible(session, "job", job)
    streams = _streams(request)
    events = JobEvents(_after(request, query))
    if events.resumed_after_end and state.final and events.attempt == state.attempt:
        return Response(status_code=204)
    end = _end(streams, session.caller)
    return _stream(streams, session.caller, state.tenant, _job_stream(streams, job, events, end))


@ROUTES.get(
    "/v1/workflows/{workflow}/events",
    public=True,
    media_type="text/event-stream",
    statuses=_STATUSES,
)
async def workflow_events(request: Request, workflow: UUID, query: StreamQuery) -> Response:
    """Stream the state and progress of a workflow, its changes, and its end."""
    session = await _signed_in(request, query)
    state = await _visible(session, "workflow", workflow)
    streams = _streams(request)
    after = _after(request, query)
    if after is not None and after == f"{state.generation}.{state.percent}.end" and state.final:
        return Response(status_code=204)
    end = _end(streams, session.caller)
    stream = _workflow_stream(streams, workflow, end)
    return _stream(streams, session.caller, state.tenant, stream)


@ROUTES.get("/v1/events", public=True, media_type="text/event-stream", statuses=_STATUSES)
async def activity_events(request: Request, query: StreamQuery) -> Response:
    """Stream the activity of all jobs: a line for each job enqueued, attempt started and ended."""
    session = await _signed_in(request, query)
    # The caller's own role decides whether it may read activity, and of which tenant.
    await session.operator.activity.recent(0)
    ((tenant,),) = await session.query("select trunkline.tenant_scope()")
    streams = _streams(request)
    end = _end(streams, session.caller)
    return _stream(streams, session.caller, tenant, _activity_stream(streams, tenant, end))


async def _job_stream(
    streams: Streams, job: UUID, events: JobEvents, end: float
) -> AsyncGenerator[bytes | None, None]:
    watch = streams.hub.open("job", job)
    try:
        while not events.ended and remaining(end) > 0:
            try:
                pause = min(streams.settings.comment_every, remaining(end))
                state = await watch.read(events.attempt, events.number, pause)
            except TimeoutError:
                yield None
                continue
            if state is None:
                return
            for event in events.of(state):
                yield event_bytes(event.kind, event.data(), event.id)
    finally:
        watch.close()


async def _workflow_stream(
    streams: Streams, workflow: UUID, end: float
) -> AsyncGenerator[bytes | None, None]:
    events = WorkflowEvents()
    watch = streams.hub.open("workflow", workflow)
    try:
        while not events.ended and remaining(end) > 0:
            try:
                pause = min(streams.settings.comment_every, remaining(end))
                state = await watch.read(timeout=pause)
            except TimeoutError:
                yield None
                continue
            if state is None:
                return
            for event in events.of(state):
                yield event_bytes(event.kind, event.data(), event.id)
    finally:
        watch.close()


async def _activity_stream(
    streams: Streams, tenant: str | None, end: float
) -> AsyncGenerator[bytes | None, None]:
    listening = streams.activity.open(tenant)
    try:
        yield event_bytes("open", {})
        while remaining(end) > 0:
            try:
                pause = min(streams.settings.comment_every, remaining(end))
                missed, lines = await listening.read(pause)
            except TimeoutError:
                yield None
                continue
            if missed:
                yield event_bytes("missed", {"lines": missed})
            for line in lines:
                yield event_bytes("activity", _line(line._asdict()))
    finally:
        streams.activity.drop(listening)


def _line(fields: dict[str, Any]) -> dict[str, Any]:
    took = fields.pop("took")
    # Errors and details may have content of jobs; GET /v1/jobs/{job} has them.
    del fields["error"], fields["detail"]
    return {**fields, "took": None if took is None else took.total_seconds()}


def _stream(
    streams: Streams,
    caller: Caller,
    tenant: str | None,
    events: AsyncGenerator[bytes | None, None],
) -> Response:
    owner = streams.enter(caller, tenant)
    return EventStream(
        events,
        stalled=streams.settings.stalled,
        on_start=streams.open.add,
        on_end=lambda stream: streams.leave(owner, stream),
    )


async def _signed_in(request: Request, query: StreamQuery) -> CallerSession:
    if query.ticket is None:
        return await session_of(request)
    caller = _streams(request).tickets.caller(request.url.path, query.ticket)
    # For the access log.
    request.scope["trunkline.caller"] = caller
    return session_for(request, caller)


async def _visible(session: CallerSession, kind: Kind, known: UUID) -> Any:
    """Return the state that the caller sees; another tenant's object is unknown."""
    states: list[LiveJob] | list[LiveWorkflow]
    if kind == "job":
        states = await session.run(live_jobs([(known, 0, 0)]))
        if not states:
            raise UnknownJob("unknown job", detail={"job": str(known)})
    else:
        states = await session.run(live_workflows([known]))
        if not states:
            raise UnknownWorkflow("unknown workflow", detail={"workflow": str(known)})
    return states[0]


def _ticket(request: Request, caller: Caller, path: str) -> StreamTicket:
    ticket, until = _streams(request).tickets.issue(path, caller)
    return StreamTicket(ticket, f"{path}?ticket={ticket}", until)


def _streams(request: Request) -> Streams:
    return resources_of(request).streams


def _after(request: Request, query: StreamQuery) -> str | None:
    return request.headers.get("last-event-id") or query.after


def _end(streams: Streams, caller: Caller) -> float:
    """Return when a stream ends: at its timeout, or with the token of its caller."""
    seconds = streams.settings.timeout
    if caller.expires_at is not None:
        seconds = min(seconds, (caller.expires_at - datetime.now(UTC)).total_seconds())
    return time.monotonic() + seconds

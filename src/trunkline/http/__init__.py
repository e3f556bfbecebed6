"""The HTTP API, an extra: pip install 'trunkline[api]'.

For rooms and profiles that add routes:

    from uuid import UUID
    from trunkline.http import CallerSession, Problem, Routes, caller_of, session_of

    ROUTES = Routes("shop")

    @ROUTES.post("/shop/orders/{order}", status=202)
    async def start(session: CallerSession, order: UUID, body: NewOrder) -> StartedOrder:
        '''The first line is the summary in the OpenAPI document.'''
        rows = await session.query("select shop.start(%s, %s)", order, body.title)

    [project.entry-points."trunkline.http"]
    shop = "shop_profile.http:ROUTES"

Parameters of such a function are filled by name: `session` (the caller must have signed in),
`request` (Starlette's), `body` and `query` (msgspec.Struct with forbid_unknown_fields=True), and
parts of the path (UUID or str). It returns a value, an `Answer` with headers, or any response of
Starlette. `Routes(tag, *routes)` also takes routes and mounts of Starlette as they are; in those:

    caller = await caller_of(request)        who asks: kind, name, role, tenant, claims, expires_at
    session = await session_of(request)      refuses anonymous callers with 401
    await session.run(call)                  one Call, as the caller, in one short transaction
    await session.query(sql, *parameters)    one statement, likewise; returns rows
    session.operator, session.client         the verbs of trunkline.operate and trunkline.client
    session_for(request, caller)             for a caller whom a route knows by a ticket of its own
    await read_json(request, Kind)           a bounded body, decoded strictly
    resources_of(request)                    settings, pool, store, server (calls as reader)
                                             and stopping, an event that ends streams

Raise any TrunklineError: a RequestError or Refusal is answered as problem+json with its http_status
and code; others become 503 or 500 without their message. No connection is held between two calls,
so never keep one while you wait for a client. In tests, run `create_app(dsn, settings)` with
httpx2.ASGITransport; `create_app(..., routes=[ROUTES])` mounts routes without an entry point.
"""

from trunkline.http.answers import Answer, page_link
from trunkline.http.application import create_app
from trunkline.http.bodies import path_id, read_json, read_query
from trunkline.http.caller import ANONYMOUS, Caller, CallerSession
from trunkline.http.problems import Problem, problem_response
from trunkline.http.resources import Resources
from trunkline.http.routing import Operation, Routes
from trunkline.http.sessions import caller_of, resources_of, session_for, session_of
from trunkline.http.settings import ApiSettings, JwtSettings

__all__ = [
    "ANONYMOUS",
    "Answer",
    "ApiSettings",
    "Caller",
    "CallerSession",
    "JwtSettings",
    "Operation",
    "Problem",
    "Resources",
    "Routes",
    "caller_of",
    "create_app",
    "page_link",
    "path_id",
    "problem_response",
    "read_json",
    "read_query",
    "resources_of",
    "session_for",
    "session_of",
]

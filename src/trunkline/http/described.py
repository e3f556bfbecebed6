"""/openapi.json, /docs and /metrics, which need a key or a setting."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from trunkline.errors import NotPermitted
from trunkline.http.openapi import openapi, reference_page
from trunkline.http.sessions import caller_of, resources_of, session_of

__all__ = ["routes"]

# The page is plain HTML: nothing is loaded and nothing runs.
_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
_POLICY: Final = {"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'"}


def routes() -> list[BaseRoute]:
    """Return the routes."""
    return [
        Route("/openapi.json", _document),
        Route("/docs", _page),
        Route("/metrics", _metrics),
    ]


async def _document(request: Request) -> Response:
    await _admit(request)
    return Response(msgspec.json.encode(_described(request)), media_type="application/json")


async def _page(request: Request) -> Response:
    await _admit(request)
    return Response(reference_page(_described(request)), media_type="text/html", headers=_POLICY)


async def _metrics(request: Request) -> Response:
    resources = resources_of(request)
    if resources.settings.public_metrics:
        await caller_of(request)
    else:
        session = await session_of(request)
        # Whoever may read the workers of all tenants may read everything that is here.
        await session.operator.workers.list()
        if session.caller.tenant is not None:
            raise NotPermitted("Metrics are for callers that act for all tenants.")
    return Response(
        await resources.metrics.text(), headers={"Cache-Control": "no-store"}, media_type=_TEXT
    )


async def _admit(request: Request) -> None:
    if resources_of(request).settings.public_openapi:
        await caller_of(request)
    else:
        await session_of(request)


def _described(request: Request) -> dict[str, Any]:
    state = request.app.state
    if not hasattr(state, "openapi"):
        state.openapi = openapi(state.operations)
    document: dict[str, Any] = state.openapi
    return document

"""The ASGI application."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.routing import BaseRoute

from trunkline.artifacts import Store
from trunkline.errors import TrunklineError
from trunkline.http import described, links
from trunkline.http.bodies import BoundedBodies
from trunkline.http.compression import Compression
from trunkline.http.context import RequestContext
from trunkline.http.mounted import mounted_routes
from trunkline.http.problems import on_disconnect, on_error, on_http_error
from trunkline.http.resources import Resources
from trunkline.http.routing import Operation, Routes
from trunkline.http.settings import ApiSettings
from trunkline.http.v1 import ROUTES

__all__ = ["create_app"]

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_HEADERS = ("Authorization", "Content-Type", "Idempotency-Key", "If-None-Match", "Last-Event-ID")
_EXPOSED = ("ETag", "Link", "Location", "Retry-After", "X-Request-ID")


def create_app(
    dsn: str | None = None,
    settings: ApiSettings | None = None,
    *,
    embedded: bool | None = None,
    store: Store | None = None,
    routes: Sequence[Routes] | None = None,
) -> Starlette:
    """Return the application. It connects to the database when the first request needs it.

    `routes` are those of profiles; by default all that installed distributions provide, or those
    that the settings name.
    """
    chosen = settings or ApiSettings.from_environment()
    mounted = mounted_routes(chosen.mounted) if routes is None else list(routes)
    resources = Resources(chosen, dsn, embedded=embedded, store=store)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await resources.close()

    app = Starlette(
        routes=list(_all_routes((*ROUTES, *mounted))),
        middleware=_middleware(chosen),
        exception_handlers={
            HTTPException: on_http_error,
            TrunklineError: on_error,
            ClientDisconnect: on_disconnect,
        },
        lifespan=lifespan,
    )
    # Paths are exact: a redirect would send credentials to an address that the client did not ask.
    app.router.redirect_slashes = False
    app.state.resources = resources
    app.state.operations = operations_of((*ROUTES, *mounted))
    return app


def operations_of(rooms: Iterable[Routes]) -> list[Operation]:
    """Return what the OpenAPI document describes."""
    return [operation for room in rooms for operation in room.operations]


def _all_routes(rooms: Iterable[Routes]) -> Iterable[BaseRoute]:
    for room in rooms:
        yield from room.as_starlette()
    yield from described.routes()
    yield from links.routes()


def _middleware(settings: ApiSettings) -> list[Middleware]:
    cors = (
        [
            Middleware(
                CORSMiddleware,
                allow_origins=settings.cors_origins,
                allow_methods=_METHODS,
                allow_headers=_HEADERS,
                expose_headers=_EXPOSED,
                max_age=600,
            )
        ]
        if settings.cors_origins
        else []
    )
    return [
        Middleware(RequestContext),
        *cors,
        Middleware(Compression, except_for=links.base_path() + "/"),
        Middleware(
            BoundedBodies,
            most=settings.max_body,
            timeout=settings.body_timeout,
            except_for=links.base_path() + "/",
        ),
    ]

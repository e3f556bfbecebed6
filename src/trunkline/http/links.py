"""Signed links to artifacts in a folder: they work without signing in."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from typing import Final
from urllib.parse import urlsplit

import anyio.from_thread
import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from trunkline.artifacts import LocalStore, answer_link
from trunkline.artifacts.links import Answer
from trunkline.errors import StoreNotConfigured, UnknownPath
from trunkline.http.sessions import resources_of

__all__ = ["base_path", "routes"]

_DEFAULT: Final = "/files"
_VARIABLE: Final = "TRUNKLINE_LINK_URL"


def base_path() -> str:
    """Return the path under which links to a folder are answered."""
    path = urlsplit(os.environ.get(_VARIABLE, _DEFAULT)).path.rstrip("/")
    return path or _DEFAULT


def routes() -> list[BaseRoute]:
    """Return the route of the links."""
    return [Route(base_path() + "/{path:path}", _answer, methods=["GET", "PUT"])]


async def _answer(request: Request) -> Response:
    try:
        store = resources_of(request).store.store
    except StoreNotConfigured as error:
        raise UnknownPath("There is no such path.") from error
    if not isinstance(store, LocalStore):
        # Buckets answer their own links.
        raise UnknownPath("There is no such path.")
    # The raw path: the signature is over names that may have escaped characters.
    raw = request.scope.get("raw_path", request.url.path.encode()).decode("ascii", "replace")
    path = raw.partition("?")[0].removeprefix(base_path())

    def answer() -> Answer:
        return answer_link(
            store,
            request.method,
            path,
            request.url.query,
            request.headers,
            body=_body(request) if request.method == "PUT" else (),
        )

    found = await anyio.to_thread.run_sync(answer)
    return StreamingResponse(
        _closing(found.body), status_code=found.status, headers=dict(found.headers)
    )


def _body(request: Request) -> Iterator[bytes]:
    """Yield the body in the thread that writes it; a full disk or slow store slows the client."""
    chunks = request.stream()

    async def following() -> bytes | None:
        return await anext(chunks, None)

    while (chunk := anyio.from_thread.run(following)) is not None:
        yield chunk


async def _closing(body: Iterator[bytes]) -> AsyncIterator[bytes]:
    try:
        while (chunk := await anyio.to_thread.run_sync(next, body, None)) is not None:
            yield chunk
    finally:
        close = getattr(body, "close", None)
        if close is not None:
            close()

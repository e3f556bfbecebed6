"""Answers: JSON with an ETag, links to further pages, and accepted work."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from trunkline.http.wire import encode

__all__ = ["Answer", "answered", "page_link"]

T = TypeVar("T")

_CACHE: Final = "private, no-cache"


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """A value with headers, and a status if it is not that of the route."""

    value: T
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int | None = None


def answered(request: Request, result: Any, status: int) -> Response:
    """Return the response for what a route returned."""
    if isinstance(result, Response):
        return result
    answer = result if isinstance(result, Answer) else Answer(result)
    code = answer.status or status
    if code == 204:
        return Response(status_code=204, headers=dict(answer.headers))
    body = encode(answer.value)
    headers = dict(answer.headers)
    if request.method in {"GET", "HEAD"} and code == 200:
        # Of the content, so that it needs no version of the row. Weak, because gzip may follow.
        tag = f'W/"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
        headers.setdefault("ETag", tag)
        headers.setdefault("Cache-Control", _CACHE)
        if _matches(request.headers.get("if-none-match", ""), headers["ETag"]):
            kept = {name: headers[name] for name in ("ETag", "Cache-Control")}
            return Response(status_code=304, headers=kept)
    headers.setdefault("Cache-Control", "no-store")
    return Response(body, code, headers, "application/json")


def page_link(request: Request, **changes: str) -> dict[str, str]:
    """Return the header Link to the next page: the same request with other parameters."""
    others = [pair for pair in request.query_params.multi_items() if pair[0] not in changes]
    query = urlencode([*others, *changes.items()])
    return {"Link": f'<{request.url.path}?{query}>; rel="next"'}


def _matches(header: str, tag: str) -> bool:
    """Whether If-None-Match has this tag, compared weakly."""
    tags = {part.strip().removeprefix("W/") for part in header.split(",")}
    return "*" in tags or tag.removeprefix("W/") in tags

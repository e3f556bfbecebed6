"""Reads requests: bounded bodies, typed values, and ids."""

from __future__ import annotations

import asyncio
from typing import Any, Final, TypeVar
from uuid import UUID

import msgspec
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trunkline.errors import (
    BodyTooLarge,
    BodyTooSlow,
    InvalidRequest,
    MalformedRequest,
    RequestError,
    UnsupportedBody,
)
from trunkline.http.problems import problem_response

__all__ = ["BoundedBodies", "decode_body", "path_id", "path_text", "read_json", "read_query"]

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)

# The rest of the body is not read, so the connection cannot be used again.
_CLOSE: Final = {"Connection": "close"}
_LONGEST_NAME: Final = 1000
_BODILESS: Final = frozenset({"GET", "HEAD", "OPTIONS", "DELETE"})


class BoundedBodies:
    """Refuses bodies that are too large or too slow, whatever reads them.

    Uploads to signed links have their own bounds, in the link.
    """

    def __init__(self, app: ASGIApp, *, most: int, timeout: float, except_for: str) -> None:
        self._app = app
        self._most = most
        self._timeout = timeout
        self._except_for = except_for

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (
            scope["type"] != "http"
            or scope["method"] in _BODILESS
            or scope["path"].startswith(self._except_for)
        ):
            await self._app(scope, receive, send)
            return
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            if declared.isdigit() and int(declared) > self._most:
                raise self._too_large()
            await self._app(scope, self._bounded(receive), watched)
        except RequestError as error:
            if started:
                raise
            await problem_response(Request(scope), error)(scope, receive, send)

    def _bounded(self, receive: Receive) -> Receive:
        read = 0
        is_complete = False
        end = asyncio.get_running_loop().time() + self._timeout

        async def bounded() -> Message:
            nonlocal read, is_complete
            if is_complete:
                return await receive()
            try:
                async with asyncio.timeout_at(end):
                    message = await receive()
            except TimeoutError as error:
                raise BodyTooSlow(
                    f"The body did not arrive within {self._timeout:g} seconds.", headers=_CLOSE
                ) from error
            if message["type"] == "http.request":
                read += len(message.get("body", b""))
                if read > self._most:
                    raise self._too_large()
                is_complete = not message.get("more_body", False)
            return message

        return bounded

    def _too_large(self) -> BodyTooLarge:
        return BodyTooLarge(
            f"The body has more than {self._most} bytes.",
            detail={"max_bytes": self._most},
            headers=_CLOSE,
        )


async def read_json(request: Request, kind: type[T]) -> T:
    """Read the body of a request as a type: strictly, and without unknown fields.

    `kind` is a msgspec.Struct with `forbid_unknown_fields=True`, or any type that msgspec reads.
    """
    return decode_body(request, await request.body(), msgspec.json.Decoder(kind))


def decode_body(request: Request, body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """Decode a body that was read already."""
    content_type = request.headers.get("content-type", "application/json")
    if content_type.partition(";")[0].strip().lower() not in {"application/json", ""}:
        raise UnsupportedBody(f"The body is {content_type[:100]}, not JSON.")
    try:
        # Where every field is optional, the body is too.
        return decoder.decode(body or b"{}")
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"The body is not valid: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedRequest(f"The body is not JSON: {error}") from error


def read_query(request: Request, kind: type[S]) -> S:
    """Read the query as a struct: numbers from their digits, lists from repeated names.

    A name that the struct does not have is refused, like one that is repeated without being a list.
    """
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    values: dict[str, Any] = {}
    for name, text in request.query_params.multi_items():
        if name not in fields:
            raise InvalidRequest(
                f"There is no query parameter {name[:100]!r}.",
                detail={"known": sorted(fields)},
            )
        if _is_list(fields[name].type):
            values.setdefault(name, []).append(text)
        elif name in values:
            raise InvalidRequest(f"The query parameter {name!r} is given twice.")
        else:
            values[name] = text
    try:
        return msgspec.convert(values, kind, strict=False, str_keys=True)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"The query is not valid: {error}") from error


def path_id(request: Request, name: str) -> UUID:
    """Return a part of the path as an id."""
    text = request.path_params[name]
    try:
        found = UUID(text)
    except ValueError:
        found = None
    # Other spellings that UUID accepts, such as braces, would be other paths of one thing.
    if found is None or str(found) != text.lower():
        raise InvalidRequest(f"{name} is not an id.", detail={"parameter": name})
    return found


def path_text(request: Request, name: str) -> str:
    """Return a part of the path as a name."""
    text: str = request.path_params[name]
    if not text.isprintable() or len(text) > _LONGEST_NAME:
        raise InvalidRequest(f"{name} is not a name.", detail={"parameter": name})
    return text


def _is_list(kind: Any) -> bool:
    info = msgspec.inspect.type_info(kind)
    parts = info.types if isinstance(info, msgspec.inspect.UnionType) else (info,)
    return any(
        isinstance(part, (msgspec.inspect.ListType, msgspec.inspect.VarTupleType)) for part in parts
    )

"""Routes: functions with typed parameters, from which requests are read and described."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar
from uuid import UUID

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from trunkline.http.answers import Answer, answered
from trunkline.http.bodies import decode_body, path_id, path_text, read_query
from trunkline.http.caller import CallerSession
from trunkline.http.sessions import session_of

__all__ = ["Operation", "Routes"]

T = TypeVar("T")
Endpoint = Callable[..., Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path, with what it takes and returns."""

    method: str
    path: str
    endpoint: Endpoint
    summary: str
    tag: str
    status: int
    body: Any = None
    query: Any = None
    answer: Any = None
    # Names in the path, and whether each is an id.
    parameters: Mapping[str, bool] = field(default_factory=dict)
    is_public: bool = False
    # Other statuses with their meaning, besides those that every operation has.
    statuses: Mapping[int, str] = field(default_factory=dict)
    is_idempotent_by_key: bool = False
    # The type of a body or answer that is not JSON, such as application/zip.
    media_type: str | None = None


class Routes:
    """Paths of one room or profile. Mount them by an entry point in the group `trunkline.http`.

    `operations` are described in the OpenAPI document. `plain` are routes of Starlette, mounts too,
    which describe themselves elsewhere.
    """

    def __init__(self, tag: str, *plain: BaseRoute) -> None:
        self.tag = tag
        self.operations: list[Operation] = []
        self.plain: list[BaseRoute] = list(plain)

    def get(self, path: str, **options: Any) -> Callable[[Endpoint], Endpoint]:
        """Declare a route for GET and HEAD; see `route`."""
        return self.route("GET", path, **options)

    def post(self, path: str, **options: Any) -> Callable[[Endpoint], Endpoint]:
        """Declare a route for POST; see `route`."""
        return self.route("POST", path, **options)

    def put(self, path: str, **options: Any) -> Callable[[Endpoint], Endpoint]:
        """Declare a route for PUT; see `route`."""
        return self.route("PUT", path, **options)

    def patch(self, path: str, **options: Any) -> Callable[[Endpoint], Endpoint]:
        """Declare a route for PATCH; see `route`."""
        return self.route("PATCH", path, **options)

    def delete(self, path: str, **options: Any) -> Callable[[Endpoint], Endpoint]:
        """Declare a route for DELETE; see `route`."""
        return self.route("DELETE", path, **options)

    def route(
        self,
        method: str,
        path: str,
        *,
        status: int = 200,
        public: bool = False,
        statuses: Mapping[int, str] | None = None,
        idempotent_by_key: bool = False,
        media_type: str | None = None,
        answer: Any = None,
    ) -> Callable[[Endpoint], Endpoint]:
        """Declare a function as the answer to requests.

        Its parameters are filled by name: `session` runs calls as the caller, who must have signed
        in; `request` is Starlette's; `body` and `query` are decoded as their annotations; any other
        name is a part of the path, a UUID or text. It returns a value, an `Answer` with headers, or
        a response of Starlette.
        """

        def declare(endpoint: Endpoint) -> Endpoint:
            hints = typing.get_type_hints(endpoint)
            returned = hints.pop("return", None)
            names = [name for name in hints if name not in _SPECIAL]
            assert all(f"{{{name}}}" in path or f"{{{name}:path}}" in path for name in names)  # noqa: S101
            self.operations.append(
                Operation(
                    method,
                    path,
                    endpoint,
                    summary=(inspect.getdoc(endpoint) or "").partition("\n")[0],
                    tag=self.tag,
                    status=status,
                    body=hints.get("body"),
                    query=hints.get("query"),
                    answer=_answer_type(returned) if answer is None else answer,
                    parameters={name: hints[name] is UUID for name in names},
                    is_public=public,
                    statuses=statuses or {},
                    is_idempotent_by_key=idempotent_by_key,
                    media_type=media_type,
                )
            )
            return endpoint

        return declare

    def as_starlette(self) -> Iterator[BaseRoute]:
        """Return the routes for Starlette: one for each path, so that 405 lists all methods."""
        paths: dict[str, dict[str, Operation]] = {}
        for operation in self.operations:
            paths.setdefault(operation.path, {})[operation.method] = operation
        for path, operations in paths.items():
            yield Route(path, _endpoint(operations), methods=list(operations))
        yield from self.plain


_SPECIAL: Final = frozenset({"body", "query", "request", "session"})


def _answer_type(returned: Any) -> Any:
    if typing.get_origin(returned) is Answer:
        return typing.get_args(returned)[0]
    if returned is None or (isinstance(returned, type) and issubclass(returned, Response)):
        return None
    return returned


class _Handler(Generic[T]):
    """Reads a request for one operation, calls its function and answers."""

    def __init__(self, operation: Operation) -> None:
        self._operation = operation
        self._parameters = inspect.signature(operation.endpoint).parameters.keys()
        self._decoder: msgspec.json.Decoder[Any] | None = (
            None if operation.body is None else msgspec.json.Decoder(operation.body)
        )

    async def __call__(self, request: Request) -> Response:
        operation = self._operation
        arguments: dict[str, Any] = {}
        # Before anything of the request is read: strangers learn nothing from its errors.
        session: CallerSession | None = None
        if not operation.is_public:
            session = await session_of(request)
        if "session" in self._parameters:
            arguments["session"] = session
        if "request" in self._parameters:
            arguments["request"] = request
        for name, is_id in operation.parameters.items():
            read = path_id if is_id else path_text
            arguments[name] = read(request, name)
        if operation.query is not None:
            arguments["query"] = read_query(request, operation.query)
        if self._decoder is not None:
            arguments["body"] = decode_body(request, await request.body(), self._decoder)
        return answered(request, await operation.endpoint(**arguments), operation.status)


def _endpoint(operations: Mapping[str, Operation]) -> Callable[[Request], Awaitable[Response]]:
    handlers = {method: _Handler[Any](operation) for method, operation in operations.items()}

    async def endpoint(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        return await handlers[method](request)

    return endpoint

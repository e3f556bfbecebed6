"""Answers to refused requests, as RFC 9457 describes them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from trunkline.errors import (
    ConnectionLost,
    DatabaseProblem,
    DatabaseUnreachable,
    LinkInvalid,
    MethodNotAllowed,
    Refusal,
    RequestError,
    SchemaForbidden,
    StatementCancelled,
    StoreError,
    TooManyConnections,
    TransactionConflict,
    TrunklineError,
    UnknownPath,
)

__all__ = [
    "Problem",
    "on_disconnect",
    "on_error",
    "on_http_error",
    "problem_of",
    "problem_response",
]

_log = logging.getLogger("trunkline.http")
_RETRY_AFTER: Final = "1"
_TRY_AGAIN: Final = "The database does not answer. Try again."
# Statuses of errors that are no refusals, and whether their message may leave the server.
_STATUSES: Final[tuple[tuple[type[TrunklineError], int, str | None], ...]] = (
    (SchemaForbidden, 403, "The role of the caller may not do this."),
    (TooManyConnections, 503, "The server is busy. Try again."),
    (ConnectionLost, 503, _TRY_AGAIN),
    (DatabaseUnreachable, 503, _TRY_AGAIN),
    (TransactionConflict, 503, "Another transaction was in the way. Try again."),
    (StatementCancelled, 503, "The database stopped the request. Try again."),
    (DatabaseProblem, 500, "The database reported a problem."),
    (LinkInvalid, 403, None),
    (StoreError, 503, "The store of artifacts does not answer."),
)
_HIDDEN: Final = frozenset({"code", "server"})


class Problem(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A refused request: what happened, with which code, and what to do about it."""

    # A URN with the code, which names the kind of problem.
    type: str
    title: str
    status: int
    # What happened this time.
    detail: str
    # Stable; docs/reference/errors has a page for each.
    code: str
    hint: str | None = None
    # The facts of the refusal, such as the field or the limit.
    facts: dict[str, Any] | None = None
    request_id: str | None = None
    # Whether the same request may succeed later.
    retryable: bool = False


def problem_of(error: Exception) -> tuple[Problem, Mapping[str, str]]:
    """Return the problem for an error, with headers that go with it."""
    if isinstance(error, RequestError):
        return _problem(error, error.http_status, str(error), error.detail), error.headers
    if isinstance(error, Refusal):
        retryable = type(error).retryable
        problem = _problem(error, error.http_status, error.message, error.detail, retryable)
        return problem, {"Retry-After": _RETRY_AFTER} if retryable else {}
    if isinstance(error, TrunklineError):
        for kind, status, text in _STATUSES:
            if isinstance(error, kind):
                retryable = status == HTTPStatus.SERVICE_UNAVAILABLE
                problem = _problem(error, status, text or error.message, {}, retryable)
                if text is not None and status != HTTPStatus.FORBIDDEN:
                    # Messages and hints of the server are for its operators.
                    problem.hint = "Operators find the reason in the log, by the request id."
                    _log.warning("%s: %s", error.code, error)
                elif status == HTTPStatus.FORBIDDEN and text is not None:
                    problem.code = "not_permitted"
                    problem.type = "urn:trunkline:error:not_permitted"
                    problem.hint = "Sign in as a caller whose role may do this."
                return problem, {"Retry-After": _RETRY_AFTER} if retryable else {}
    _log.error("a request failed", exc_info=error)
    status = HTTPStatus.INTERNAL_SERVER_ERROR
    return (
        Problem(
            type="urn:trunkline:error:internal",
            title=status.phrase,
            status=status,
            detail="The server failed to answer.",
            code="internal",
            hint="Operators find the reason in the log, by the request id.",
        ),
        {},
    )


def problem_response(request: Request, error: Exception) -> Response:
    """Return the answer to a request that failed."""
    problem, headers = problem_of(error)
    problem.request_id = request.scope.get("trunkline.request_id")
    return Response(
        msgspec.json.encode(problem, enc_hook=str),
        problem.status,
        {**headers, "Cache-Control": "no-store"},
        "application/problem+json",
    )


async def on_error(request: Request, error: Exception) -> Response:
    """Answer an error of a route."""
    return problem_response(request, error)


async def on_disconnect(_request: Request, _error: Exception) -> Response:
    """End a request whose client has left; nobody reads the answer."""
    return Response(status_code=HTTPStatus.BAD_REQUEST)


async def on_http_error(request: Request, error: Exception) -> Response:
    """Answer what Starlette itself refuses: unknown paths and methods."""
    status = getattr(error, "status_code", HTTPStatus.NOT_FOUND)
    headers = getattr(error, "headers", None)
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        refused: RequestError = MethodNotAllowed("The path does not take this method.")
        refused.headers.update(headers or {})
    elif status == HTTPStatus.NOT_FOUND:
        refused = UnknownPath("There is no such path.")
    else:
        refused = RequestError(str(getattr(error, "detail", "The request was refused.")))
    return problem_response(request, refused)


def _problem(
    error: TrunklineError,
    status: int,
    message: str,
    facts: Mapping[str, Any],
    retryable: bool = False,
) -> Problem:
    kept = {name: value for name, value in facts.items() if name not in _HIDDEN}
    return Problem(
        type=f"urn:trunkline:error:{error.code}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=message,
        code=error.code,
        hint=error.hint or None,
        facts=kept or None,
        retryable=retryable,
    )

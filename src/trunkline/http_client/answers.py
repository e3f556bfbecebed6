"""Reads answers: values, or the error that their code names."""

from __future__ import annotations

from functools import cache
from typing import Any, Final, TypeVar

import httpx2
import msgspec

from trunkline import errors
from trunkline.errors import ApiUnreachable, Refusal, RequestError, TrunklineError

__all__ = ["decoded", "refusal_of", "unreachable"]

T = TypeVar("T")

_LONGEST: Final = 300


class _Problem(msgspec.Struct):
    detail: str = ""
    code: str = ""
    hint: str | None = None
    facts: dict[str, Any] | None = None


def decoded(response: httpx2.Response, kind: type[T]) -> T:
    """Return the value of an answer, or raise the error that it describes."""
    if response.status_code >= 300:
        raise refusal_of(response)
    try:
        return msgspec.json.decode(response.content, type=kind)
    except msgspec.DecodeError as error:
        raise ApiUnreachable(
            f"The answer is not one of this API: {error}", hint="Check the address of the API."
        ) from error


def refusal_of(response: httpx2.Response) -> TrunklineError:
    """Return the error that an answer describes."""
    try:
        problem = msgspec.json.decode(response.content, type=_Problem)
    except msgspec.DecodeError:
        problem = _Problem()
    if not problem.code:
        text = response.text[:_LONGEST]
        return ApiUnreachable(
            f"Status {response.status_code}: {text}", hint="Check the address of the API."
        )
    kind = _kinds().get(problem.code)
    if kind is None:
        return RequestError(f"{problem.detail} ({problem.code})", hint=problem.hint)
    if issubclass(kind, (Refusal, RequestError)):
        return kind(problem.detail, hint=problem.hint, detail=problem.facts)
    return kind(problem.detail, hint=problem.hint)


def unreachable(error: httpx2.TransportError) -> ApiUnreachable:
    """Return our error for an API that does not answer."""
    return ApiUnreachable(f"The API does not answer: {type(error).__name__}: {error}")


@cache
def _kinds() -> dict[str, type[TrunklineError]]:
    known = (kind for kind in vars(errors).values() if isinstance(kind, type))
    plain = (Refusal, RequestError, errors.DatabaseProblem, errors.DatabaseUnreachable)
    return {kind.code: kind for kind in known if issubclass(kind, plain)}

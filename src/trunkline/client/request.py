"""A request to run a task, before it is a job."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, Self, TypedDict, TypeVar

import msgspec

from trunkline.client.references import Reference
from trunkline.errors import InvalidArgument
from trunkline.model import Duration, as_request, seconds

__all__ = [
    "PLAIN",
    "OptionArguments",
    "Options",
    "Request",
    "StepRequest",
    "document",
    "payloads",
]

R = TypeVar("R")


class OptionArguments(TypedDict, total=False):
    """The keyword arguments of `options`; each is explained in `Options`."""

    priority: int | None
    delay: Duration | None
    run_at: datetime | None
    expires: Duration | datetime | None
    queue: str | None
    unique_key: str | None
    idempotency_key: str | None
    tenant: str | None
    correlation_id: str | None
    max_attempts: int | None
    tags: Sequence[str] | None
    cost: Mapping[str, int] | None
    accepted: bool | None
    connection: Any


_KINDS: dict[str, type] = {
    **dict.fromkeys(("priority", "max_attempts"), int),
    **dict.fromkeys(("queue", "unique_key", "idempotency_key", "tenant", "correlation_id"), str),
}


def _misfit(option: str, expected: str, value: object) -> InvalidArgument:
    return InvalidArgument(
        "an option has the wrong type",
        hint=f"Pass {option} as {expected}.",
        detail={"option": option, "got": repr(value)},
    )


def _check_zone(option: str, value: Any) -> None:
    if getattr(value, "tzinfo", None) is None:
        raise InvalidArgument(
            f"{option} has no time zone",
            hint="Pass an aware datetime, such as datetime.now(UTC) + timedelta(hours=1).",
            detail={option: str(value)},
        )


def _deadline(expires: Duration | datetime | None) -> datetime | None:
    if expires is None or isinstance(expires, datetime):
        return expires
    return datetime.now(UTC) + timedelta(seconds=seconds(expires))


@dataclass(frozen=True, slots=True)
class Options:
    """How a job is enqueued. For options that are None, the policy of its task decides."""

    # From -50 to 49; higher ones start first.
    priority: int | None = None
    # The job starts no earlier than this long from now, or than this time.
    delay: Duration | None = None
    run_at: datetime | None = None
    # If the job has not started by this time, or this long from now by the clock of this process,
    # it is cancelled with reason expired. Retries do not expire.
    expires: Duration | datetime | None = None
    queue: str | None = None
    # While a live job of this task has the key, enqueuing with the key returns that job. In a
    # profile, a key counts for all tasks of the profile.
    unique_key: str | None = None
    # A repeated request with this key returns the job of the first one, even after that job has
    # ended. A different payload is refused.
    idempotency_key: str | None = None
    tenant: str | None = None
    correlation_id: str | None = None
    max_attempts: int | None = None
    tags: Sequence[str] | None = None
    # What the job takes of its task's limits: requests, tokens and units.
    cost: Mapping[str, int] | None = None
    # True for work that was already accepted elsewhere: it waits where a new job would be refused,
    # at a full or paused queue, a full limit or a spent quota. Refused in a session of one tenant.
    accepted: bool | None = None
    # The caller's connection or session: the job exists if and when its transaction commits.
    connection: Any = None

    def __post_init__(self) -> None:
        if self.run_at is not None:
            _check_zone("run_at", self.run_at)
        if self.delay is not None:
            seconds(self.delay)
        if isinstance(self.expires, datetime):
            _check_zone("expires", self.expires)
        elif self.expires is not None:
            seconds(self.expires)
        for name, kind in _KINDS.items():
            value = getattr(self, name)
            if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
                raise _misfit(name, kind.__name__, value)
        if self.tags is not None and (
            not isinstance(self.tags, (list, tuple, set, frozenset))
            or not all(isinstance(tag, str) for tag in self.tags)
        ):
            raise _misfit("tags", "list of str", self.tags)
        if self.cost is not None and not isinstance(self.cost, Mapping):
            raise _misfit("cost", 'dictionary such as {"tokens": 1200}', self.cost)
        if self.accepted is not None and not isinstance(self.accepted, bool):
            raise _misfit("accepted", "bool", self.accepted)

    def but(self, **changes: Any) -> Self:
        """Return a copy of these options with some of them changed."""
        unknown = changes.keys() - {field.name for field in fields(self)}
        if unknown:
            raise InvalidArgument(
                "unknown option",
                hint="The options are " + ", ".join(field.name for field in fields(self)) + ".",
                detail={"option": ", ".join(sorted(unknown))},
            )
        return replace(self, **changes)

    def as_fields(self) -> dict[str, Any]:
        """Return the options that are set, as enqueue_many takes them."""
        if self is PLAIN:
            return {}
        values = {name: getattr(self, name) for name in _SENT}
        return as_request({**values, "expires_at": _deadline(self.expires)})


_SENT = tuple(field.name for field in fields(Options) if field.name != "connection")
# Most requests have no options. They share this object, so that one comparison detects them.
PLAIN = Options()
# The same options as an object of its own: requests of a workflow are never enqueued on the fast
# paths, which do not check their class.
STEP_OPTIONS = Options()


class Request(msgspec.Struct, Generic[R], frozen=True, gc=False):
    """A task, a payload that fits it, and how to enqueue it."""

    task: str
    payload: bytes
    options: Options
    decode_result: Callable[[Any], Any]


class StepRequest(Request[R], Generic[R], frozen=True, gc=False):
    """A request with results of other steps among its arguments, for a workflow only."""

    references: tuple[Reference, ...] = ()


def payloads(requests: Iterable[Request[Any]]) -> str:
    """Return the payloads alone, as one JSON array."""
    return (b"[" + b",".join([request.payload for request in requests]) + b"]").decode()


def document(requests: Iterable[Request[Any]]) -> str:
    """Encode requests as the one document that the engine takes."""
    jobs: list[Mapping[str, Any]] = [
        {"task": request.task, "payload": msgspec.Raw(request.payload)}
        | request.options.as_fields()
        for request in requests
    ]
    try:
        return msgspec.json.encode(jobs).decode()
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgument(
            "an option has an invalid value",
            hint="Keys, tags, queue and tenant are text, priority and max_attempts whole numbers.",
            detail={"problem": str(error)},
        ) from error

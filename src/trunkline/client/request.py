"""A request to run a task, before it is a job."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, Self, TypedDict, TypeVar

import msgspec

from trunkline.errors import InvalidArgument
from trunkline.model import Duration, as_request, seconds

__all__ = ["PLAIN", "OptionArguments", "Options", "Request", "document", "payloads"]

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


def _misfit(option: str, wanted: str, value: object) -> InvalidArgument:
    return InvalidArgument(
        "an option has the wrong type",
        hint=f"Pass {option} as {wanted}.",
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
    """How a job is enqueued; what is None is left to the policy of its task."""

    # From -50 to 49, the larger one goes first.
    priority: int | None = None
    # Not before this long from now, or not before then.
    delay: Duration | None = None
    run_at: datetime | None = None
    # If it has not started by then, or this long from now by the clock of this process, it ends
    # cancelled with reason expired. Retries do not expire.
    expires: Duration | datetime | None = None
    queue: str | None = None
    # While a live job of this task has the key, enqueuing it again gives that job. In a profile the
    # key counts for all tasks of the profile.
    unique_key: str | None = None
    # A repeated request with this key gets the first one's job, even after it has ended. Another
    # payload is refused.
    idempotency_key: str | None = None
    tenant: str | None = None
    correlation_id: str | None = None
    max_attempts: int | None = None
    tags: Sequence[str] | None = None
    # What it takes of its task's limits: requests, tokens and units.
    cost: Mapping[str, int] | None = None
    # True for a job that was accepted before: it waits where a new one would be refused, that is at
    # a full or paused queue, a full limit or a spent quota. A session of one tenant may not say so.
    accepted: bool | None = None
    # The caller's own connection or session: the job exists if and when its transaction commits.
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
        """These options with some of them changed."""
        unknown = changes.keys() - {field.name for field in fields(self)}
        if unknown:
            raise InvalidArgument(
                "unknown option",
                hint="The options are " + ", ".join(field.name for field in fields(self)) + ".",
                detail={"option": ", ".join(sorted(unknown))},
            )
        return replace(self, **changes)

    def as_fields(self) -> dict[str, Any]:
        """Return the options that are given, as enqueue_many takes them."""
        if self is PLAIN:
            return {}
        values = {name: getattr(self, name) for name in _SENT}
        return as_request({**values, "expires_at": _deadline(self.expires)})


_SENT = tuple(field.name for field in fields(Options) if field.name != "connection")
# Most requests say nothing; one object for all of them makes that quick to see.
PLAIN = Options()


class Request(msgspec.Struct, Generic[R], frozen=True, gc=False):
    """A task, a payload that fits it, and how to enqueue it."""

    task: str
    payload: bytes
    options: Options
    decode_result: Callable[[Any], Any]


def payloads(requests: Iterable[Request[Any]]) -> str:
    """The payloads alone, as one JSON array."""
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
            "an option is not what it must be",
            hint="Keys, tags, queue and tenant are text, priority and max_attempts whole numbers.",
            detail={"problem": str(error)},
        ) from error

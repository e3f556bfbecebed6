"""Jobs that a handler waits for: their document for the engine, and their results in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar
from uuid import UUID

import msgspec

from trunkline.errors import ChildJobFailed, InvalidArgument, ResultMismatch, StepMismatch

__all__ = [
    "ChildGraph",
    "ChildRequest",
    "Children",
    "failed_child",
    "missing_results",
    "started_children",
]

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")

# Options of a request that a job of a workflow cannot have, with the reason.
_UNSUITABLE = {
    "run_at": "pass delay",
    "tenant": "children belong to the tenant of their parent",
    "idempotency_key": "the parent's step makes them start once",
    "connection": "they start in the transaction that records the wait",
}


class ChildOptions(Protocol):
    """The options of a request."""

    connection: Any

    def as_fields(self) -> dict[str, Any]:
        """Return the options that are set."""


class ChildRequest(Protocol[T_co]):
    """A request as `task.request(...)` returns it."""

    @property
    def task(self) -> str:
        """The name of the task."""

    @property
    def payload(self) -> bytes:
        """The payload as JSON."""

    @property
    def options(self) -> Any:
        """How the job is enqueued."""

    def decode_result(self, value: Any, /) -> T_co:
        """Return a stored result as its type."""


class Children(NamedTuple):
    """The jobs that a handler waits for, as the engine describes them."""

    workflow: UUID
    # Whether an earlier attempt started them for other requests; then their tasks and numbers.
    changed: bool
    steps: Sequence[tuple[str, int]]


class ChildGraph(Generic[T]):
    """Requests as steps of a workflow, one for each task, and where each result belongs."""

    def __init__(self, requests: Sequence[ChildRequest[T]]) -> None:
        self._requests = list(requests)
        self._results: dict[int, T] = {}
        # All requests of a task decode results in the same way.
        self._decoders: dict[str, Callable[[Any], T]] = {
            request.task: request.decode_result for request in self._requests
        }
        # Positions of the requests by step; the index within a step is the number of the item.
        self.steps: dict[str, list[int]] = {}
        for position, request in enumerate(self._requests):
            self.steps.setdefault(request.task, []).append(position)
        self._read = dict.fromkeys(self.steps, 0)

    @property
    def document(self) -> str:
        """The steps of the graph as JSON."""
        steps = [
            {"name": task, "task": task, "items": [self._item(self._requests[i]) for i in places]}
            for task, places in self.steps.items()
        ]
        return msgspec.json.encode(steps).decode()

    def _item(self, request: ChildRequest[T]) -> Mapping[str, Any]:
        fields = request.options.as_fields()
        if request.options.connection is not None:
            fields["connection"] = True
        for option, reason in _UNSUITABLE.items():
            if option in fields:
                raise InvalidArgument(
                    "an option does not apply to a job that its parent waits for",
                    hint=f"Leave it out: {reason}.",
                    detail={"option": option, "task": request.task},
                )
        return {"payload": msgspec.Raw(request.payload), **fields}

    def adopt(self, steps: Sequence[tuple[str, int]]) -> None:
        """Read the results of jobs that were started for other requests, task by task."""
        self.steps = {}
        total = 0
        for task, number in steps:
            self.steps[task] = list(range(total, total + number))
            total += number
        self._read = dict.fromkeys(self.steps, 0)

    def missing_from(self, step: str) -> int:
        """Return from which item on results are missing, counted from 1; 0 if none is."""
        read = self._read[step]
        return read + 1 if read < len(self.steps[step]) else 0

    def take(self, step: str, item: int, value: Any) -> None:
        """Decode one result."""
        decode: Callable[[Any], T] = self._decoders.get(step, _plain)
        try:
            self._results[self.steps[step][item]] = decode(value)
        except ResultMismatch as error:
            raise StepMismatch(
                f"The result of a job of {step} does not match its annotation: {error}",
                result=f"the result of a job of {step}",
            ) from error
        self._read[step] = item + 1

    def results(self) -> list[T]:
        """Return the results in the order of the requests."""
        return [self._results[position] for position in range(len(self._results))]


def _plain(value: Any) -> Any:
    return value


def started_children(document: str | None) -> Children:
    """Return the jobs that the engine has started or found."""
    children = msgspec.json.decode(document or "{}")
    return Children(
        UUID(int=0) if document is None else UUID(children["workflow"]),
        children.get("changed", False),
        children.get("steps", ()),
    )


def missing_results(step: str) -> StepMismatch:
    """Return the error for results that should be there."""
    return StepMismatch(
        f"Results of the jobs of {step} are no longer stored",
        hint="Raise the setting workflow_retention, or use the results in a step.",
    )


def failed_child(document: str | None) -> ChildJobFailed:
    """Return the error for the first job that did not complete."""
    child = msgspec.json.decode(document or "{}")
    job = UUID(child.get("job") or child["workflow"])
    return ChildJobFailed(
        job, child.get("state", "cancelled"), child.get("reason"), error=child.get("error")
    )

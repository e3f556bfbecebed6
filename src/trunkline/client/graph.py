"""The graph of a workflow while it is built: its steps, what they need, and its document."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Generic, TypedDict, TypeVar, cast

import msgspec

from trunkline.client.graph_checks import find_cycle, step_options
from trunkline.client.references import Meaning, Reference, escaped, meaning
from trunkline.client.request import Request, StepRequest
from trunkline.errors import InvalidWorkflow
from trunkline.handler import Results
from trunkline.model import Duration, WorkflowEnd, seconds
from trunkline.model.codec import encode

__all__ = ["AnyStep", "Graph", "Step", "StepSet", "WorkflowArguments", "check_request", "job_parts"]

R = TypeVar("R")
T = TypeVar("T")


class WorkflowArguments(TypedDict, total=False):
    """The keyword arguments of `app.workflow` and `app.batch`."""

    # When it fails unless it has ended: a duration from its start, or a time.
    deadline: Duration | datetime | None
    # While a live workflow of this name has the key, starting another one returns it.
    unique_key: str | None
    # A repeated start with this key returns the first workflow, even after it has ended.
    idempotency_key: str | None
    tenant: str | None
    correlation_id: str | None
    tags: Sequence[str] | None
    # Of all jobs whose request has no priority.
    priority: int | None
    # A JSON object that handlers can read: ctx.workflow().
    params: Mapping[str, Any] | None
    # The weight of each phase of the progress: {"text": 40, "pdf": 20, "audio": 40}.
    phases: Mapping[str, float] | None


class AnyStep:
    """A step of a workflow."""

    def __init__(self, graph: Graph, name: str, task: str, decode: Callable[[Any], Any]) -> None:
        self._graph = graph
        self.name = name
        self.task = task
        # Returns a stored result as the type in the handler's annotation.
        self.decode_result = decode

    def __repr__(self) -> str:
        return f"<step {self.name} of {self._graph.name}>"

    def _reference(self, kind: Any) -> Any:
        return Reference(Meaning(kind, self._graph, self.name))


class Step(AnyStep, Generic[R]):
    """A step that runs one job; R is the type of its result."""

    @property
    def result(self) -> R:
        """Stands for the result of the job, as an argument of later steps."""
        return cast("R", self._reference("result"))


class StepSet(AnyStep, Generic[R]):
    """A step that runs many jobs of one task; R is the type of their results."""

    @property
    def results(self) -> Results[R]:
        """Stands for the results of all jobs in order, as an argument of later steps."""
        return cast("Results[R]", self._reference("results"))


_AFTER: Final = "Pass steps of this workflow, or their names: after=[scan] or after='scan'."


class Graph:
    """The part of workflows and batches that needs no database."""

    _kind = "workflow"

    def __init__(self, name: str, arguments: Mapping[str, Any]) -> None:
        given: object = name
        if not isinstance(given, str) or not given:
            raise InvalidWorkflow(
                "A workflow has no name", hint='Pass one: app.workflow("report").'
            )
        unknown = arguments.keys() - WorkflowArguments.__annotations__.keys()
        if unknown:
            raise InvalidWorkflow(
                f"app.{self._kind} has no argument " + ", ".join(sorted(unknown)),
                hint="It accepts " + ", ".join(WorkflowArguments.__annotations__) + ".",
            )
        self.name = name
        self._arguments = arguments
        self._steps: dict[str, dict[str, Any]] = {}
        self._callbacks: dict[str, dict[str, Any]] = {}
        self._end = Reference(Meaning("workflow", self))
        # Reported now, not when the workflow starts.
        self._options = self._encoded_options()

    def __repr__(self) -> str:
        return f"<{self._kind} {self.name} with {len(self._steps)} steps>"

    @property
    def end(self) -> WorkflowEnd:
        """Stands for how the workflow ended, as an argument of a callback."""
        return cast("WorkflowEnd", self._end)

    def on_completed(self, request: Request[Any]) -> None:
        """Enqueue a job when the workflow has completed."""
        self._callbacks["on_completed"] = self._callback(request)

    def on_failure(self, request: Request[Any]) -> None:
        """Enqueue a job when the workflow has failed and nothing of it runs any more."""
        self._callbacks["on_failure"] = self._callback(request)

    def on_cancel(self, request: Request[Any]) -> None:
        """Enqueue a job when the workflow was cancelled and nothing of it runs any more."""
        self._callbacks["on_cancel"] = self._callback(request)

    def on_end(self, request: Request[Any]) -> None:
        """Enqueue a job when the workflow has ended, in whatever state."""
        self._callbacks["on_end"] = self._callback(request)

    @property
    def tasks(self) -> set[str]:
        """The tasks of all steps and callbacks."""
        return {part["task"] for part in (*self._steps.values(), *self._callbacks.values())}

    def document(self) -> str:
        """Return the graph as start_workflow takes it; refuse one that can never run."""
        if not self._steps:
            raise InvalidWorkflow(
                f"{self!r} cannot be started", hint="Add a step: workflow.add(task.request(…))."
            )
        self._check_dependencies()
        steps = list(self._steps.values())
        graph = {"name": self.name, "kind": self._kind, **self._options, **self._callbacks}
        return msgspec.json.encode({**graph, "steps": steps}).decode()

    def _check_dependencies(self) -> None:
        edges = {name: self._dependencies(step) for name, step in self._steps.items()}
        for name, others in edges.items():
            for other in others:
                if other not in self._steps:
                    raise InvalidWorkflow(
                        f"Step {name} of {self.name} waits for step {other}, which does not exist",
                        hint="Its steps are " + ", ".join(self._steps) + ".",
                    )
        cycle = find_cycle(edges)
        if cycle:
            raise InvalidWorkflow(
                f"Steps of {self.name} wait for each other: " + " → ".join(cycle),
                hint="Remove one of these dependencies.",
            )

    def _dependencies(self, step: Mapping[str, Any]) -> list[str]:
        return [*step.get("after", ())]

    def _add_step(
        self,
        name: str,
        task: str,
        parts: Mapping[str, Any],
        *,
        after: object,
        needs: Iterable[str],
        phase: str | None,
    ) -> None:
        if name in self._steps:
            raise InvalidWorkflow(
                f"{self.name} has two steps named {name}",
                hint="Pass another name: workflow.add(request, name='…').",
            )
        phases = self._arguments.get("phases")
        if phase is not None and phase not in (phases or ()):
            raise InvalidWorkflow(
                f"Step {name} of {self.name} is in phase {phase}, which is not declared",
                hint=f"Name it with its weight: app.workflow(…, phases={{{phase!r}: 100}}).",
            )
        waits_for = dict.fromkeys((*needs, *self._names(name, after)))
        step: dict[str, Any] = {"name": name, "task": task, **parts}
        if waits_for:
            step["after"] = list(waits_for)
        if phase is not None:
            step["phase"] = phase
        self._steps[name] = step

    def _names(self, step: str, after: object) -> list[str]:
        """Return the names of the steps that another one waits for."""
        if isinstance(after, (AnyStep, str)):
            after = (after,)
        if not isinstance(after, Iterable) or type(after) is Reference:
            raise InvalidWorkflow(f"after= of step {step} is {after!r}", hint=_AFTER)
        names = []
        for other in after:
            if isinstance(other, AnyStep):
                self._check_owner(step, other._graph, repr(other))  # noqa: SLF001 - same module
                names.append(other.name)
            elif isinstance(other, str):
                names.append(other)
            else:
                raise InvalidWorkflow(f"after= of step {step} has {other!r}", hint=_AFTER)
        return names

    def _needs(self, step: str, request: Request[Any], item: Reference | None = None) -> list[str]:
        """Return the names of the steps whose results are arguments of a request."""
        names = []
        for reference in _references(request):
            _, owner, name = meaning(reference)
            if reference is item:
                continue
            self._check_owner(step, owner, repr(reference))
            if name is None:
                raise InvalidWorkflow(
                    f"{meaning(reference).text} cannot be an argument of step {step}",
                    hint="Only a callback can use it: workflow.on_failure(task.request(…)).",
                )
            names.append(name)
        return names

    def _check_owner(self, step: str, owner: object, what: str) -> None:
        if owner is not self:
            raise InvalidWorkflow(
                f"Step {step} of {self.name} uses {what} of another workflow",
                hint="Build all steps with one app.workflow(…); an item belongs to its own map.",
            )

    def _callback(self, request: Request[Any]) -> dict[str, Any]:
        check_request(request)
        for reference in _references(request):
            if meaning(reference).kind != "workflow" or meaning(reference).owner is not self:
                raise InvalidWorkflow(
                    f"{meaning(reference).text} cannot be an argument of a callback",
                    hint="Pass workflow.end, or read the result in the handler.",
                )
        payload = msgspec.Raw(request.payload)
        return {"task": request.task, "payload": payload, **step_options(request)}

    def _encoded_options(self) -> dict[str, Any]:
        values = {name: value for name, value in self._arguments.items() if value is not None}
        deadline = values.get("deadline")
        if isinstance(deadline, datetime):
            if deadline.tzinfo is None:
                raise InvalidWorkflow(
                    f"The deadline of {self.name} has no time zone",
                    hint="Pass an aware datetime, or a duration such as '2h'.",
                )
            values["deadline"] = deadline.isoformat()
        elif deadline is not None:
            values["deadline"] = f"{seconds(deadline):f} seconds"
        if "params" in values:
            try:
                values["params"] = msgspec.Raw(encode(values["params"]))
            except TypeError as error:
                raise InvalidWorkflow(f"The params of {self.name} are not JSON: {error}") from error
        if "phases" in values:
            values["phases"] = _phases(self.name, values["phases"])
        if "tags" in values:
            values["tags"] = list(values["tags"])
        return values


def _phases(workflow: str, phases: object) -> list[dict[str, Any]]:
    if (
        not isinstance(phases, Mapping)
        or not phases
        or not all(isinstance(name, str) and name for name in phases)
        or not all(type(weight) in {int, float} and weight > 0 for weight in phases.values())
    ):
        raise InvalidWorkflow(
            f"phases of {workflow} is {phases!r}",
            hint='Pass a positive weight for each: phases={"text": 40, "pdf": 20, "audio": 40}.',
        )
    return [{"name": name, "weight": weight} for name, weight in phases.items()]


def check_request(request: object) -> None:
    if not isinstance(request, Request):
        raise InvalidWorkflow(
            f"{request!r} is not a request", hint="Create one with task.request(…)."
        )


def _references(request: Request[Any]) -> tuple[Reference, ...]:
    return request.references if isinstance(request, StepRequest) else ()


def job_parts(request: Request[Any]) -> dict[str, Any]:
    """Return payload and options of a request as a step or an item has them."""
    payload = request.payload
    if type(request) is Request and b'{"$' in payload:
        fields = msgspec.json.decode(payload, type=dict[str, msgspec.Raw])
        payload = msgspec.json.encode(
            {name: msgspec.Raw(escaped(bytes(field))) for name, field in fields.items()}
        )
    return {"payload": msgspec.Raw(payload), **step_options(request)}

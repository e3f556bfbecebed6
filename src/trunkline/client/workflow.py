"""Workflows and batches: what is added to them, and how they start."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, cast

from trunkline.client.graph import AnyStep, Graph, Step, StepSet, check_request, job_parts
from trunkline.client.references import Meaning, Reference, meaning
from trunkline.client.request import Request
from trunkline.errors import InvalidWorkflow

if TYPE_CHECKING:
    from trunkline.client._async.connection import AsyncClient
    from trunkline.client._async.workflows import AsyncWorkflowHandle
    from trunkline.client._sync.connection import SyncClient
    from trunkline.client._sync.workflows import SyncWorkflowHandle

__all__ = ["Batch", "Workflow"]

R = TypeVar("R")
T = TypeVar("T")

# One step or several, or their names.
After = AnyStep | str | Iterable[AnyStep | str]


class _Startable(Graph):
    def __init__(
        self, name: str, arguments: Mapping[str, Any], *, clients: tuple[AsyncClient, SyncClient]
    ) -> None:
        super().__init__(name, arguments)
        self._clients = clients

    async def start(self, *, connection: Any = None) -> AsyncWorkflowHandle:
        """Store the workflow with its jobs, all or nothing, and return its handle.

        With the caller's connection or session, it exists if and when that transaction commits.
        """
        return await self._clients[0].workflows.start(self, connection=connection)

    @cached_property
    def sync(self) -> _SyncStart:
        """The same call, blocking."""
        return _SyncStart(self, self._clients[1])


class _SyncStart:
    def __init__(self, graph: Graph, client: SyncClient) -> None:
        self._graph = graph
        self._client = client

    def start(self, *, connection: Any = None) -> SyncWorkflowHandle:
        """Store the workflow with its jobs, all or nothing, and return its handle."""
        return self._client.workflows.start(self._graph, connection=connection)


class Workflow(_Startable):
    """Builds a graph of jobs; `app.workflow("report")` returns one.

    Nothing is sent to the database before `start`.
    """

    def add(
        self,
        request: Request[R],
        *,
        name: str | None = None,
        after: After = (),
        phase: str | None = None,
    ) -> Step[R]:
        """Add a step that runs one job, after the steps whose results it takes."""
        check_request(request)
        name = request.task if name is None else name
        self._add_step(
            name,
            request.task,
            job_parts(request),
            after=after,
            needs=self._needs(name, request),
            phase=phase,
        )
        return Step(self, name, request.task, request.decode_result)

    def add_many(
        self,
        requests: Iterable[Request[R]],
        *,
        name: str | None = None,
        after: After = (),
        phase: str | None = None,
    ) -> StepSet[R]:
        """Add a step that runs one job of the same task for each request."""
        batch = list(requests)
        for request in batch:
            check_request(request)
        tasks = sorted({request.task for request in batch})
        if len(tasks) != 1:
            problem = f"requests of {', '.join(tasks)}" if tasks else "no requests"
            raise InvalidWorkflow(
                f"add_many of {self.name} got {problem}",
                hint="All jobs of a step belong to one task. Add a step for each task.",
            )
        name = tasks[0] if name is None else name
        needs = [other for request in batch for other in self._needs(name, request)]
        items = [job_parts(request) for request in batch]
        self._add_step(name, tasks[0], {"items": items}, after=after, needs=needs, phase=phase)
        return StepSet(self, name, tasks[0], batch[0].decode_result)

    def map(
        self,
        over: Sequence[T],
        request: Callable[[T], Request[R]],
        *,
        name: str | None = None,
        after: After = (),
        phase: str | None = None,
    ) -> StepSet[R]:
        """Add a step that runs one job for each item of a list that an earlier step returns,
        or for each result of a set or a map.

        `request` is called once, with a value that stands for the item:
        `workflow.map(scan.result, lambda page: read.request(page))`.
        """
        source: object = over
        if not isinstance(source, Reference) or meaning(source).kind not in {"result", "results"}:
            raise InvalidWorkflow(
                f"map of {self.name} got {over!r}",
                hint="Pass the result of a step: workflow.map(scan.result, …). "
                "For a list that is known now, use add_many.",
            )
        item = Reference(Meaning("item", self))
        template = request(cast("T", item))
        check_request(template)
        name = template.task if name is None else name
        self._check_owner(name, meaning(source).owner, repr(source))
        needs = [str(meaning(source).step), *self._needs(name, template, item)]
        parts = {"map": meaning(source).step, **job_parts(template)}
        self._add_step(name, template.task, parts, after=after, needs=needs, phase=phase)
        return StepSet(self, name, template.task, template.decode_result)

    def chain(
        self, *requests: Request[Any], after: After = (), phase: str | None = None
    ) -> tuple[Step[Any], ...]:
        """Add steps that run one after the other."""
        steps: list[Step[Any]] = []
        for request in requests:
            step = self.add(request, after=steps[-1] if steps else after, phase=phase)
            steps.append(step)
        return tuple(steps)

    def add_last(
        self, request: Request[R], *, name: str | None = None, phase: str | None = None
    ) -> Step[R]:
        """Add a step that runs after everything that was added so far."""
        waited_for = {other for step in self._steps.values() for other in step.get("after", ())}
        ends = [name for name in self._steps if name not in waited_for]
        return self.add(request, name=name, after=ends, phase=phase)


class Batch(_Startable):
    """Many jobs without dependencies, and callbacks when all have ended; see `app.batch`."""

    _kind = "batch"

    def add(self, request: Request[Any]) -> None:
        """Add a job."""
        self.add_many([request])

    def add_many(self, requests: Iterable[Request[Any]]) -> None:
        """Add many jobs, of any tasks."""
        for request in requests:
            check_request(request)
            if self._needs(request.task, request):
                raise InvalidWorkflow(
                    f"A job of batch {self.name} uses the result of another one",
                    hint="Jobs of a batch run in any order. Use app.workflow(…).",
                )
            parts = job_parts(request)
            if request.task not in self._steps:
                self._add_step(
                    request.task, request.task, {"items": []}, after=(), needs=(), phase=None
                )
            self._steps[request.task]["items"].append(parts)

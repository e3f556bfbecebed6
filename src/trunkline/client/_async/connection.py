"""The connections of an application, and the calls that it makes through them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar
from uuid import UUID

from trunkline.artifacts import AsyncArtifacts, AsyncStore
from trunkline.client._async.jobs import STATES, AsyncJobHandle, AsyncJobs
from trunkline.client._async.workflows import AsyncWorkflows
from trunkline.client.graph import Graph
from trunkline.client.live import AsyncLive
from trunkline.client.request import PLAIN, Request, StepRequest, document, payloads
from trunkline.client.task import Task, tasks_by_name
from trunkline.db.address import UNKNOWN
from trunkline.db.call import Call
from trunkline.db.calls.produce import enqueue, enqueue_batch, enqueue_document, register_tasks
from trunkline.db.calls.steps import send_event
from trunkline.db.calls.workflows import start
from trunkline.db.foreign import enqueue_on_async, start_on_async
from trunkline.db.patient import CALL_PATIENCE
from trunkline.db.pool import AsyncPool
from trunkline.errors import InvalidArgument, InvalidWorkflow, UnsupportedConnection
from trunkline.model import Enqueued, Job, SentEvent, StartedWorkflow
from trunkline.model.codec import encode

__all__ = ["AsyncClient"]

T = TypeVar("T")


class AsyncRunner(Protocol):
    """What runs the calls of a client: a pool, or what a server puts in front of its own."""

    @property
    def address(self) -> str:
        """Host, port and database of the server, without credentials."""

    async def run(self, call: Call[T], patience: float = CALL_PATIENCE) -> T:
        """Run one call in its own transaction; abandon a server that is silent for so long."""

    async def server_dsn(self) -> str:
        """Return the connection string of the server."""

    async def close(self) -> None:
        """Close the connections."""


class AsyncClient:
    """Enqueues requests and gives access to jobs. Connects at its first use."""

    def __init__(
        self,
        dsn: str | None,
        tasks: Mapping[str, Task[..., Any]],
        *,
        embedded: bool | None = None,
        listen_dsn: str | None = None,
        connections: int = 10,
        store: AsyncStore,
    ) -> None:
        self._listen_dsn = listen_dsn
        self._size = connections
        self._open(AsyncPool(dsn, embedded=embedded, size=connections), tasks, store)

    @classmethod
    def over(cls, runner: AsyncRunner, store: AsyncStore) -> Self:
        """Return a client whose calls a server runs on its own connections; it has no tasks."""
        client = object.__new__(cls)
        client._listen_dsn = None
        client._open(runner, {}, store)
        return client

    def _open(
        self, runner: AsyncRunner, tasks: Mapping[str, Task[..., Any]], store: AsyncStore
    ) -> None:
        self._pool = runner
        self._tasks = tasks
        self._registered: set[str] = set()
        self.live = AsyncLive(self)
        self.jobs = AsyncJobs(self)
        self.workflows = AsyncWorkflows(self)
        self._store = store
        self.artifacts = AsyncArtifacts(self, store)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections, and stop the embedded server if nobody else uses it."""
        await self.live.close()
        await self._store.close()
        await self._pool.close()

    @contextmanager
    def connect_to(self, dsn: str, listen_dsn: str | None = None) -> Iterator[None]:
        """Use another database within the block; see Trunkline.connect_to."""
        previous = self._pool, self._registered, self.live, self._listen_dsn
        pool = AsyncPool(dsn, size=self._size)
        self._pool, self._registered = pool, set()
        self.live, self._listen_dsn = AsyncLive(self), listen_dsn
        try:
            yield
        finally:
            self.live.abandon()
            pool.abandon()
            self._pool, self._registered, self.live, self._listen_dsn = previous

    async def run(self, call: Call[T], patience: float = CALL_PATIENCE) -> T:
        """Run any call of the engine on a connection of the application."""
        try:
            return await self._pool.run(call, patience)
        except UNKNOWN as error:
            # Usually a misspelt name; otherwise the job or task is on another server.
            error.detail["server"] = self.server
            raise

    async def server_dsn(self) -> str:
        """Return the connection string of the server, for connections besides the pool."""
        return await self._pool.server_dsn()

    async def listen_dsn(self) -> str:
        """Return the connection string for LISTEN."""
        return self._listen_dsn or await self._pool.server_dsn()

    @property
    def server(self) -> str:
        """The address of the server, as messages name it; empty before the first use."""
        return self._pool.address

    async def enqueue_one(self, request: Request[T]) -> AsyncJobHandle[T]:
        """Enqueue one request, with a faster call if it has no options."""
        if request.options is not PLAIN:
            return (await self.enqueue_many([request]))[0]
        if request.task not in self._registered:
            await self._register({request.task})
        answer = await self.run(enqueue(request.task, request.payload.decode()))
        return AsyncJobHandle.of(self.jobs, request, answer)

    async def send_event(
        self,
        target: UUID | str | AsyncJobHandle[Any] | Job,
        name: str,
        payload: Any = None,
        *,
        event_id: str | None = None,
        tenant: str | None = None,
    ) -> SentEvent:
        """Send an event to a job, or to a key, for `ctx.wait_for` in handlers.

        Text is a key; pass the id of a job as a UUID. The first event of a name wins: after it the
        outcome is `already`. With an `event_id`, the same event with another payload is refused.
        `tenant` is that of a key. The payload has at most 64 KB of JSON.
        """
        try:
            document = encode(payload, in_order=event_id is not None).decode()
        except TypeError as error:
            raise InvalidArgument(
                "the payload of an event is not JSON",
                detail={"event": name, "problem": str(error)},
            ) from error
        key = target if isinstance(target, str) else None
        job = None if isinstance(target, str) else _job_id(target)
        call = send_event(name, document, job=job, key=key, event_id=event_id, tenant=tenant)
        return await self.run(call)

    async def enqueue_many(self, requests: Iterable[Request[Any]]) -> list[AsyncJobHandle[Any]]:
        """Enqueue requests of any tasks at once, all or none; return their handles in order."""
        batch = _checked(requests)
        if not batch:
            return []
        tasks = {request.task for request in batch}
        await self._register(tasks)
        if len(tasks) == 1 and {id(request.options) for request in batch} == {id(PLAIN)}:
            return await self._enqueue_batch(batch)
        answers = await self._enqueue(batch)
        return [
            AsyncJobHandle.of(self.jobs, request, answer)
            for request, answer in zip(batch, answers, strict=True)
        ]

    async def _enqueue_batch(self, requests: list[Request[Any]]) -> list[AsyncJobHandle[Any]]:
        """Enqueue many jobs of one task that have no options, with a faster call."""
        answer = await self.run(enqueue_batch(requests[0].task, payloads(requests)))
        jobs, state, run_at = self.jobs, STATES[answer.state], answer.run_at
        return [
            AsyncJobHandle(jobs, request, job_id, state, run_at)
            for request, job_id in zip(requests, answer.job_ids, strict=True)
        ]

    async def _enqueue(self, requests: Sequence[Request[Any]]) -> Sequence[Enqueued]:
        connection = _common_connection(requests)
        if connection is None:
            return await self.run(enqueue_document(document(requests)))
        return await enqueue_on_async(connection, document(requests))

    async def start_document(self, document: str) -> StartedWorkflow:
        """Start a workflow from a graph as a JSON document, as `trunkline.start_workflow` takes."""
        return await self.run(start(document))

    async def start_workflow(self, graph: Graph, connection: Any) -> StartedWorkflow:
        """Start a workflow, on the caller's connection if there is one."""
        document = graph.document()
        await self._register(graph.tasks)
        if connection is None:
            return await self.run(start(document))
        return await start_on_async(connection, document)

    async def _register(self, tasks: set[str]) -> None:
        """Register tasks of this application before their first job.

        This uses a separate connection: in the caller's transaction, a refusal would abort it, and
        a locked task row would delay every worker that starts.
        """
        unknown = tasks - self._registered
        if not unknown:
            return
        known = tasks_by_name(self._tasks)
        new = [known[name].policy_of(name) for name in unknown if name in known]
        if new:
            await self.run(register_tasks(new))
        self._registered |= tasks


def _job_id(target: Any) -> UUID:
    job = getattr(target, "id", target)
    if not isinstance(job, UUID):
        raise InvalidArgument(
            "an event is sent to a job or to a key",
            hint="Pass a job, its id as a UUID, or a key as text.",
            detail={"target": repr(target)[:200]},
        )
    return job


def _checked(requests: object) -> list[Request[Any]]:
    batch: list[Any] = list(requests) if isinstance(requests, Iterable) else [requests, None]
    if others := set(map(type, batch)) - {Request}:
        if others == {StepRequest}:
            raise InvalidWorkflow(
                "A request uses the result of a step, but is not part of a workflow",
                hint="Add it to the workflow that the step belongs to: workflow.add(request).",
            )
        raise InvalidArgument(
            "enqueue_many takes a list of requests",
            hint="Create each with task.request(...), for example [send.request(to=name)].",
        )
    return batch


def _common_connection(requests: Sequence[Request[Any]]) -> Any:
    connections = {id(request.options.connection): request.options for request in requests}
    if len(connections) > 1:
        raise UnsupportedConnection(
            "Requests of one call name different connections",
            hint="Enqueue them in one call for each connection.",
        )
    return requests[0].options.connection

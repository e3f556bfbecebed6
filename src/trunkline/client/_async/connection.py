"""The connections of an application, and what it asks the engine through them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

from trunkline.client._async.jobs import STATES, AsyncJobHandle, AsyncJobs
from trunkline.client.registry import Registry
from trunkline.client.request import PLAIN, Request, document, payloads
from trunkline.db.address import UNKNOWN
from trunkline.db.call import Call
from trunkline.db.calls.produce import enqueue, enqueue_batch, enqueue_document, register_tasks
from trunkline.db.foreign import enqueue_on_async
from trunkline.db.patient import CALL_PATIENCE
from trunkline.db.pool import AsyncPool
from trunkline.errors import InvalidArgument, UnsupportedConnection
from trunkline.model import Enqueued

__all__ = ["AsyncClient"]

T = TypeVar("T")


class AsyncClient:
    """Enqueues requests and looks after jobs. Connects at its first use."""

    def __init__(
        self,
        dsn: str | None,
        registry: Registry,
        *,
        embedded: bool | None = None,
        connections: int = 10,
    ) -> None:
        self._size = connections
        self._pool = AsyncPool(dsn, embedded=embedded, size=connections)
        self._registry = registry
        self._registered: set[str] = set()
        self.jobs = AsyncJobs(self)

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
        await self._pool.close()

    @contextmanager
    def connect_to(self, dsn: str) -> Iterator[None]:
        """Use another database within the block; see Trunkline.connect_to."""
        before = self._pool, self._registered
        self._pool, self._registered = AsyncPool(dsn, size=self._size), set()
        try:
            yield
        finally:
            self._pool.abandon()
            self._pool, self._registered = before

    async def run(self, call: Call[T], patience: float = CALL_PATIENCE) -> T:
        """Run any call of the engine on a connection of the application."""
        try:
            return await self._pool.run(call, patience)
        except UNKNOWN as error:
            # Usually a misspelt name; otherwise the job or task is on another server.
            error.detail["server"] = self.server
            raise

    @property
    def server(self) -> str:
        """The server of this client, as named in messages; empty before its first use."""
        return self._pool.address

    async def enqueue_one(self, request: Request[T]) -> AsyncJobHandle[T]:
        """Enqueue one request: the short way for one that says nothing special."""
        if request.options is not PLAIN:
            return (await self.enqueue_many([request]))[0]
        if request.task not in self._registered:
            await self._make_known({request.task})
        answer = await self.run(enqueue(request.task, request.payload.decode()))
        return AsyncJobHandle.of(self.jobs, request, answer)

    async def enqueue_many(self, requests: Iterable[Request[Any]]) -> list[AsyncJobHandle[Any]]:
        """Enqueue requests of any tasks at once, all or none; one handle for each, in order."""
        wanted = _checked(requests)
        if not wanted:
            return []
        tasks = {request.task for request in wanted}
        await self._make_known(tasks)
        if len(tasks) == 1 and {id(request.options) for request in wanted} == {id(PLAIN)}:
            return await self._enqueue_batch(wanted)
        answers = await self._enqueue(wanted)
        return [
            AsyncJobHandle.of(self.jobs, request, answer)
            for request, answer in zip(wanted, answers, strict=True)
        ]

    async def _enqueue_batch(self, requests: list[Request[Any]]) -> list[AsyncJobHandle[Any]]:
        """The short way for many jobs of one task that say nothing special."""
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

    async def _make_known(self, tasks: set[str]) -> None:
        """Register tasks of this application before their first job.

        On a connection of our own: a refusal would end the transaction of the caller, and a row of
        a task locked in it would hold up every worker that starts.
        """
        unknown = tasks - self._registered
        if not unknown:
            return
        handlers = self._registry.handlers
        new = [handlers[name].policy_of(name) for name in unknown if name in handlers]
        if new:
            await self.run(register_tasks(new))
        self._registered |= tasks


def _checked(requests: object) -> list[Request[Any]]:
    found: list[Any] = list(requests) if isinstance(requests, Iterable) else [requests, None]
    if set(map(type, found)) - {Request}:
        raise InvalidArgument(
            "enqueue_many takes a list of requests",
            hint="Make each with task.request(...), for example [send.request(to=name)].",
        )
    return found


def _common_connection(requests: Sequence[Request[Any]]) -> Any:
    connections = {id(request.options.connection): request.options for request in requests}
    if len(connections) > 1:
        raise UnsupportedConnection(
            "Requests of one call name different connections",
            hint="Enqueue them in one call for each connection.",
        )
    return requests[0].options.connection

"""The application object: declares tasks and gives access to jobs."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar, Unpack, cast, overload
from uuid import UUID

from trunkline.artifacts import AsyncArtifacts, AsyncStore, Store, SyncStore, open_store
from trunkline.artifacts.address import configured_address
from trunkline.client._async.connection import AsyncClient
from trunkline.client._async.jobs import AsyncJobHandle, AsyncJobs
from trunkline.client._async.workflows import AsyncWorkflows
from trunkline.client._sync.connection import SyncClient
from trunkline.client.graph import WorkflowArguments
from trunkline.client.request import Request
from trunkline.client.task import Task, tasks_by_name
from trunkline.client.task_arguments import TaskArguments
from trunkline.client.workflow import Batch, Workflow
from trunkline.errors import DuplicateTask, InvalidArgument, InvalidTask
from trunkline.handler import Context, SyncContext
from trunkline.model import Job, SentEvent

__all__ = ["Trunkline"]

P = ParamSpec("P")
R = TypeVar("R")


class _Decorator(Protocol):
    """The functions that `@app.task(...)` accepts: with or without a context, async or not."""

    @overload
    def __call__(
        self, handler: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> Task[P, R]: ...
    @overload
    def __call__(self, handler: Callable[P, Coroutine[Any, Any, R]], /) -> Task[P, R]: ...
    @overload
    def __call__(self, handler: Callable[Concatenate[SyncContext, P], R], /) -> Task[P, R]: ...
    @overload
    def __call__(self, handler: Callable[P, R], /) -> Task[P, R]: ...


class Trunkline:
    """An application: its tasks, and its connections to one database.

    Without a connection string it uses TRUNKLINE_DSN. Without that, it starts an embedded
    PostgreSQL and logs a warning. With embedded=False it raises DsnRequired instead; with
    embedded=True it does not warn; with None, TRUNKLINE_EMBEDDED decides. It connects when it is
    first used. `store` is the folder or bucket of artifacts, as `trunkline.artifacts.open_store`
    takes it; TRUNKLINE_STORE is the default.
    """

    def __init__(
        self,
        dsn: str | None = None,
        *,
        embedded: bool | None = None,
        listen_dsn: str | None = None,
        connections: int = 10,
        store: str | os.PathLike[str] | Store | None = None,
    ) -> None:
        if embedded not in (None, True, False):
            # The string "0" from a configuration file would count as true.
            raise InvalidArgument(
                "embedded is not True, False or None", detail={"embedded": repr(embedded)}
            )
        self.dsn = dsn
        # Whether the embedded server may be used when there is no connection string.
        self.embedded = embedded
        # Where LISTEN works, if `dsn` leads through a pooler in transaction mode.
        self.listen_dsn = listen_dsn
        # Tasks by name. Aliases are not keys, so each task is listed once.
        self.tasks: dict[str, Task[..., Any]] = {}
        # Where artifacts and large results go; None: TRUNKLINE_STORE decides, or there is none.
        self.store = store
        self._client = AsyncClient(
            dsn,
            self.tasks,
            embedded=embedded,
            listen_dsn=listen_dsn,
            connections=connections,
            store=AsyncStore(self.open_store),
        )
        self.sync = SyncClient(
            dsn,
            self.tasks,
            embedded=embedded,
            listen_dsn=listen_dsn,
            connections=connections,
            store=SyncStore(self.open_store),
        )

    @property
    def jobs(self) -> AsyncJobs:
        """Existing jobs: get, list, wait, follow, cancel, retry. Blocking form: `sync.jobs`."""
        return self._client.jobs

    @property
    def artifacts(self) -> AsyncArtifacts:
        """Files of completed jobs: list, open, link, delete, ZIP. Blocking: `sync.artifacts`."""
        return self._client.artifacts

    @property
    def has_store(self) -> bool:
        """Whether a store is configured."""
        return self.store is not None or configured_address() is not None

    def open_store(self) -> Store:
        """Open the store of artifacts: `store`, else TRUNKLINE_STORE."""
        return open_store(self.store)

    async def enqueue_many(self, requests: Iterable[Request[Any]]) -> list[AsyncJobHandle[Any]]:
        """Enqueue requests of any tasks at once, all or none."""
        return await self._client.enqueue_many(requests)

    def workflow(self, name: str, **arguments: Unpack[WorkflowArguments]) -> Workflow:
        """Build a workflow: a graph of jobs that is stored at once and ends once.

        Add steps, then `await workflow.start()`. The arguments are those of `WorkflowArguments`.
        """
        return Workflow(name, arguments, clients=(self._client, self.sync))

    def batch(self, name: str, **arguments: Unpack[WorkflowArguments]) -> Batch:
        """Build a batch: jobs without dependencies, and callbacks when all of them have ended."""
        return Batch(name, arguments, clients=(self._client, self.sync))

    @property
    def workflows(self) -> AsyncWorkflows:
        """Existing workflows: get, list, cancel, retry, rerun. Blocking form: `sync.workflows`."""
        return self._client.workflows

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
        return await self._client.send_event(
            target, name, payload, event_id=event_id, tenant=tenant
        )

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
        await self._client.close()

    @contextmanager
    def connect_to(self, dsn: str, *, listen_dsn: str | None = None) -> Iterator[Self]:
        """Use another database within the block, in the whole process; meant for tests.

        Modules import the tasks that they enqueue, so a test cannot pass them another application.
        Connections that were opened in the block are closed at its end.
        """
        previous = self.dsn, self.listen_dsn
        self.dsn, self.listen_dsn = dsn, listen_dsn
        try:
            with (
                self._client.connect_to(dsn, listen_dsn),
                self.sync.connect_to(dsn, listen_dsn),
            ):
                yield self
        finally:
            self.dsn, self.listen_dsn = previous

    @overload
    def task(
        self, handler: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> Task[P, R]: ...
    @overload
    def task(self, handler: Callable[P, Coroutine[Any, Any, R]], /) -> Task[P, R]: ...
    @overload
    def task(self, handler: Callable[Concatenate[SyncContext, P], R], /) -> Task[P, R]: ...
    @overload
    def task(self, handler: Callable[P, R], /) -> Task[P, R]: ...
    @overload
    def task(self, /, **arguments: Unpack[TaskArguments]) -> _Decorator: ...
    def task(self, handler: Callable[..., Any] | None = None, /, **arguments: Any) -> Any:
        """Make a function the handler of a task.

        Its parameters are the schema of the payload. The worker passes the optional first one:
        `ctx: Context` to `async def`, `ctx: SyncContext` to `def`. `async def` runs in the event
        loop, `def` in a thread, `def` with `process=True` in a process that is killed at the hard
        limit. The arguments are those of `TaskArguments`.
        """

        def declare(function: Callable[..., Any]) -> Task[..., Any]:
            if isinstance(function, Task):
                raise InvalidTask(
                    f"{function!r} is already a task", hint="Decorate each function once."
                )
            # Classes and callable objects are refused: their annotations are elsewhere.
            if isinstance(function, type) or not hasattr(function, "__name__"):
                raise InvalidTask(
                    f"{function!r} is not a function",
                    hint="Write @app.task or @app.task(queue=...) above a function.",
                )
            known = cast("TaskArguments", _known(arguments))
            return self._add(Task(function, known, clients=(self._client, self.sync)))

        return declare if handler is None else declare(handler)

    def _add(self, task: Task[..., Any]) -> Task[..., Any]:
        existing = tasks_by_name(self.tasks)
        for name in task.names:
            if name in existing:
                raise _duplicate(name, existing[name], task)
        self.tasks[task.name] = task
        return task


def _known(arguments: dict[str, Any]) -> dict[str, Any]:
    unknown = arguments.keys() - TaskArguments.__annotations__.keys()
    if unknown:
        raise InvalidTask(
            "@app.task has no argument " + ", ".join(sorted(unknown)),
            hint="It accepts " + ", ".join(sorted(TaskArguments.__annotations__)) + ".",
        )
    return arguments


def _duplicate(name: str, first: Task[..., Any], second: Task[..., Any]) -> DuplicateTask:
    places = f"{_place(first.handler)} and {_place(second.handler)}"
    if first.name == second.name == name:
        return DuplicateTask(f"Task {name} is defined twice: {places}")
    return DuplicateTask(
        f"Two tasks have the name or alias {name}: {first.name} and {second.name}, {places}",
        hint="Remove it from the aliases of one of them: a job has one handler.",
    )


def _place(handler: Callable[..., Any]) -> str:
    code = getattr(handler, "__code__", None)
    if code is None:
        return repr(handler)
    return f"{handler.__module__}.{handler.__qualname__} (line {code.co_firstlineno})"

"""The application object: where tasks are declared and jobs are reached."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar, Unpack, cast, overload

from trunkline.client._async.connection import AsyncClient
from trunkline.client._async.jobs import AsyncJobHandle, AsyncJobs
from trunkline.client._sync.connection import SyncClient
from trunkline.client.declaring import TaskArguments
from trunkline.client.registry import Registry
from trunkline.client.request import Request
from trunkline.client.task import Task
from trunkline.errors import DuplicateTask, InvalidArgument, InvalidTask
from trunkline.handler import Context, SyncContext

__all__ = ["Trunkline"]

P = ParamSpec("P")
R = TypeVar("R")


class _Decorator(Protocol):
    """What `@app.task(...)` accepts: with or without a context first, asynchronous or not."""

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
    first used.
    """

    def __init__(
        self,
        dsn: str | None = None,
        *,
        embedded: bool | None = None,
        listen_dsn: str | None = None,
        connections: int = 10,
    ) -> None:
        if embedded not in (None, True, False):
            # The string "0" from a configuration file would be true.
            raise InvalidArgument(
                "embedded is not True, False or None", detail={"embedded": repr(embedded)}
            )
        self.dsn = dsn
        # Whether the embedded server may be used when there is no connection string.
        self.embedded = embedded
        # Where LISTEN works, if `dsn` leads through a pooler in transaction mode.
        self.listen_dsn = listen_dsn
        self.tasks = Registry()
        self._client = AsyncClient(dsn, self.tasks, embedded=embedded, connections=connections)
        self.sync = SyncClient(dsn, self.tasks, embedded=embedded, connections=connections)

    @property
    def jobs(self) -> AsyncJobs:
        """Jobs that exist: get, list, wait, cancel, retry, explain; blocking: `sync.jobs`."""
        return self._client.jobs

    async def enqueue_many(self, requests: Iterable[Request[Any]]) -> list[AsyncJobHandle[Any]]:
        """Enqueue requests of any tasks at once, all or none."""
        return await self._client.enqueue_many(requests)

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

        Tasks are imported by the modules that enqueue them, so a test cannot hand over another
        application. Connections made in the block end with it.
        """
        before = self.dsn, self.listen_dsn
        self.dsn, self.listen_dsn = dsn, listen_dsn
        try:
            with self._client.connect_to(dsn), self.sync.connect_to(dsn):
                yield self
        finally:
            self.dsn, self.listen_dsn = before

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
                    f"{function!r} is a task already", hint="Decorate each function once."
                )
            # Neither a class nor an object that can be called: their annotations are elsewhere.
            if isinstance(function, type) or not hasattr(function, "__name__"):
                raise InvalidTask(
                    f"{function!r} is not a function",
                    hint="Write @app.task or @app.task(queue=...) above a function.",
                )
            said = cast("TaskArguments", _known(arguments))
            return self._add(Task(function, said, clients=(self._client, self.sync)))

        return declare if handler is None else declare(handler)

    def _add(self, task: Task[..., Any]) -> Task[..., Any]:
        taken = self.tasks.handlers
        for name in task.names:
            if name in taken:
                raise _duplicate(name, taken[name], task)
        self.tasks[task.name] = task
        return task


def _known(arguments: dict[str, Any]) -> dict[str, Any]:
    unknown = arguments.keys() - TaskArguments.__annotations__.keys()
    if unknown:
        raise InvalidTask(
            "@app.task does not know " + ", ".join(sorted(unknown)),
            hint="It takes " + ", ".join(sorted(TaskArguments.__annotations__)) + ".",
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

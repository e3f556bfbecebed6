"""A task: a handler, its policy, and how to enqueue it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NoReturn, ParamSpec, TypeVar

from trunkline.client._async.task import AsyncCalls
from trunkline.client._sync.task import SyncCalls
from trunkline.client.request import PLAIN
from trunkline.client.signature import Schema
from trunkline.client.task_arguments import (
    TaskArguments,
    as_aliases,
    as_cost,
    as_policy,
    as_schedule,
)
from trunkline.client.task_limits import provider_limit
from trunkline.errors import InvalidTask, TaskNotCallable
from trunkline.model import TaskPolicy

if TYPE_CHECKING:
    from trunkline.client._async.connection import AsyncClient
    from trunkline.client._sync.connection import SyncClient

__all__ = ["Task", "tasks_by_name"]

P = ParamSpec("P")
R = TypeVar("R")

Mode = Literal["async", "thread", "process"]


class Task(AsyncCalls[P, R]):
    """A function that was decorated with `@app.task`.

    `enqueue` and `enqueue_many` are asynchronous; `sync` has the same methods for blocking code.
    """

    def __init__(
        self,
        handler: Callable[..., Any],
        arguments: TaskArguments,
        *,
        clients: tuple[AsyncClient, SyncClient],
    ) -> None:
        self.handler = handler
        self.policy = as_policy(handler, arguments)
        # Old names of the task. Its handler also runs jobs that are stored under them.
        self.aliases = as_aliases(self.name, arguments)
        # The limit that calls of the handler are charged to, unless they name another.
        self.limit = provider_limit(self.policy)
        self.schedule = as_schedule(arguments)
        self.mode: Mode = _mode(self.name, handler, process=arguments.get("process", False))
        self.schema = Schema(self.name, handler, as_cost(arguments))
        self._sync_client = clients[1]
        super().__init__(clients[0], self.schema, PLAIN)
        if self.schedule is not None:
            # Report a payload that does not fit now, not when the schedule is due.
            self.schema.encode((), dict(self.schedule.payload))
        self.__doc__ = inspect.getdoc(handler)

    @property
    def name(self) -> str:
        """The name under which its jobs are stored."""
        return self.policy.task

    @property
    def names(self) -> tuple[str, ...]:
        """All names under which its jobs may be stored: its own, then the old ones."""
        return (self.name, *self.aliases)

    def policy_of(self, name: str) -> TaskPolicy:
        """Return the policy for one of its names: jobs under an old name have the same policy."""
        if name == self.name:
            return self.policy
        return replace(self.policy, task=name, alias_of=self.name)

    @property
    def policies(self) -> list[TaskPolicy]:
        """The policies of all its names."""
        return [self.policy_of(name) for name in self.names]

    @cached_property
    def sync(self) -> SyncCalls[P, R]:
        """The same calls, blocking."""
        return SyncCalls(self._sync_client, self.schema, PLAIN)

    def __repr__(self) -> str:
        return f"<task {self.name}>"

    if not TYPE_CHECKING:  # for the type checker, a task is not callable

        def __call__(self, *_args: Any, **_kwargs: Any) -> NoReturn:
            raise TaskNotCallable(f"Task {self.name} was called like a function")


def tasks_by_name(tasks: Mapping[str, Task[..., Any]]) -> dict[str, Task[..., Any]]:
    """Return the task that runs the jobs of each name or alias."""
    return {name: task for task in tasks.values() for name in task.names}


def _mode(task: str, handler: Callable[..., Any], *, process: bool) -> Mode:
    if inspect.isasyncgenfunction(handler) or inspect.isgeneratorfunction(handler):
        raise InvalidTask(f"The handler of {task} is a generator", hint="Return a value instead.")
    asynchronous = inspect.iscoroutinefunction(handler)
    if process and asynchronous:
        raise InvalidTask(
            f"The handler of {task} is `async def` with process=True",
            hint="Use `def`: a separate process has no event loop to share.",
        )
    if asynchronous:
        return "async"
    return "process" if process else "thread"

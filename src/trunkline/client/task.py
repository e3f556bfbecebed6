"""A task: a handler, its policy, and how to enqueue it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NoReturn, ParamSpec, TypeVar

from trunkline.client._async.task import AsyncCalls
from trunkline.client._sync.task import SyncCalls
from trunkline.client.declaring import (
    TaskArguments,
    as_aliases,
    as_cost,
    as_policy,
    as_schedule,
)
from trunkline.client.limiting import provider_limit
from trunkline.client.request import PLAIN
from trunkline.client.signature import Schema
from trunkline.errors import InvalidTask, TaskNotCallable
from trunkline.model import TaskPolicy

if TYPE_CHECKING:
    from trunkline.client._async.connection import AsyncClient
    from trunkline.client._sync.connection import SyncClient

__all__ = ["Task"]

P = ParamSpec("P")
R = TypeVar("R")

Mode = Literal["async", "thread", "process"]


class Task(AsyncCalls[P, R]):
    """What `@app.task` makes of a function.

    `enqueue`, `enqueue_many`, `options` and `request` are asynchronous; `sync` has the same for
    code that is not.
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
        # Old names, whose jobs it runs as well.
        self.aliases = as_aliases(self.name, arguments)
        # Of which calls of its handler take, unless they say otherwise.
        self.limit = provider_limit(self.policy)
        self.schedule = as_schedule(arguments)
        self.mode: Mode = _mode(self.name, handler, process=arguments.get("process", False))
        self.schema = Schema(self.name, handler, as_cost(arguments))
        self._sync_client = clients[1]
        super().__init__(clients[0], self.schema, PLAIN)
        if self.schedule is not None:
            # A schedule that could never run is a mistake of now, not of midnight.
            self.schema.encode((), dict(self.schedule.payload))
        self.__doc__ = inspect.getdoc(handler)

    @property
    def name(self) -> str:
        """The name under which jobs of it are stored."""
        return self.policy.task

    @property
    def names(self) -> tuple[str, ...]:
        """All names whose jobs its handler runs: its own, then the old ones."""
        return (self.name, *self.aliases)

    def policy_of(self, name: str) -> TaskPolicy:
        """The policy of one of its names: jobs under an old name are run by the same rules."""
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

    if not TYPE_CHECKING:  # for the checker a task is not callable at all

        def __call__(self, *_args: Any, **_kwargs: Any) -> NoReturn:
            raise TaskNotCallable(f"Task {self.name} was called like a function")


def _mode(task: str, handler: Callable[..., Any], *, process: bool) -> Mode:
    if inspect.isasyncgenfunction(handler) or inspect.isgeneratorfunction(handler):
        raise InvalidTask(f"The handler of {task} is a generator", hint="Return a value instead.")
    asynchronous = inspect.iscoroutinefunction(handler)
    if process and asynchronous:
        raise InvalidTask(
            f"The handler of {task} is `async def` with process=True",
            hint="Use `def`: a process of its own has no event loop to share.",
        )
    if asynchronous:
        return "async"
    return "process" if process else "thread"

"""The typed calls `ctx.step` and `ctx.once`: their result has the return type of the function."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

if TYPE_CHECKING:
    from trunkline.handler._async.steps import AsyncSteps
    from trunkline.handler._sync.steps import SyncSteps

__all__ = ["StepCalls", "SyncStepCalls"]

R = TypeVar("R")


class StepCalls:
    """Steps of `async def` handlers."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def _steps(self) -> AsyncSteps: ...

    @overload
    async def step(
        self,
        name: str,
        function: Callable[..., Coroutine[Any, Any, R]],
        /,
        *args: Any,
        key: str | None = None,
        retries: int = 0,
        on_change: Literal["fail", "reuse"] = "fail",
        **kwargs: Any,
    ) -> R: ...
    @overload
    async def step(
        self,
        name: str,
        function: Callable[..., R],
        /,
        *args: Any,
        key: str | None = None,
        retries: int = 0,
        on_change: Literal["fail", "reuse"] = "fail",
        **kwargs: Any,
    ) -> R: ...
    async def step(
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: Any,
        key: str | None = None,
        retries: int = 0,
        on_change: Literal["fail", "reuse"] = "fail",
        **kwargs: Any,
    ) -> Any:
        """Call a function and record its result, which later attempts of the job reuse.

        The result is stored as JSON and read as the return annotation of the function. Calls of
        one name are told apart by their order; calls that run at the same time need `key`, such as
        a page number. `retries` repeats a failed call within the attempt, after growing pauses. If
        an earlier attempt recorded the step with other arguments, it raises StepChanged, which
        makes the job dead; `on_change="reuse"` returns the recorded result. A plain function runs
        in a thread.
        """
        return await self._steps.step(
            name, function, args, kwargs, key=key, retries=retries, on_change=on_change
        )

    @overload
    async def once(
        self,
        name: str,
        function: Callable[..., Coroutine[Any, Any, R]],
        /,
        *args: Any,
        **kwargs: Any,
    ) -> R: ...
    @overload
    async def once(
        self, name: str, function: Callable[..., R], /, *args: Any, **kwargs: Any
    ) -> R: ...
    async def once(
        self, name: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Any:
        """Call a function once for all jobs of the workflow, and return its result to each.

        The first attempt that asks calls it; the others are suspended until the result is recorded.
        """
        return await self._steps.once(name, function, args, kwargs)


class SyncStepCalls:
    """The same for plain handlers."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def _steps(self) -> SyncSteps: ...

    def step(
        self,
        name: str,
        function: Callable[..., R],
        /,
        *args: Any,
        key: str | None = None,
        retries: int = 0,
        on_change: Literal["fail", "reuse"] = "fail",
        **kwargs: Any,
    ) -> R:
        """Call a function and record its result, which later attempts of the job reuse.

        See Context.step.
        """
        value: R = self._steps.step(
            name, function, args, kwargs, key=key, retries=retries, on_change=on_change
        )
        return value

    def once(self, name: str, function: Callable[..., R], /, *args: Any, **kwargs: Any) -> R:
        """Call a function once for all jobs of the workflow, and return its result to each."""
        value: R = self._steps.once(name, function, args, kwargs)
        return value

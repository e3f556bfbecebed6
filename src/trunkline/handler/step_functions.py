"""Calls the function of a step, from a coroutine or from a thread."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from trunkline.errors import InvalidTask

__all__ = [
    "INSIDE",
    "StepCall",
    "call_function",
    "call_function_async",
    "refuse_inside",
    "sibling",
    "sibling_async",
]


@dataclass(frozen=True, slots=True)
class StepCall:
    """One call of a step's function, and the files that it has uploaded."""

    name: str
    key: str
    files: list[UUID] = field(default_factory=list)


# The call of a step that runs in this context.
INSIDE: Final[ContextVar[StepCall | None]] = ContextVar("trunkline_step", default=None)


def refuse_inside(what: str) -> None:
    """Refuse a wait for something within a step."""
    inside = INSIDE.get()
    if inside is not None:
        raise InvalidTask(
            f"Step {inside.name} waits for {what}",
            hint="A step cannot be suspended: wait in the handler, between two steps.",
        )


async def call_function_async(
    call: StepCall, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """Call a function; a plain one runs in a thread, so that it does not block the event loop."""
    token = INSIDE.set(call)
    try:
        if inspect.iscoroutinefunction(function):
            return await function(*args, **kwargs)
        value = await asyncio.to_thread(function, *args, **kwargs)
        return await value if inspect.isawaitable(value) else value
    finally:
        INSIDE.reset(token)


def call_function(
    call: StepCall, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """Call a plain function."""
    token = INSIDE.set(call)
    try:
        value = function(*args, **kwargs)
    finally:
        INSIDE.reset(token)
    if inspect.iscoroutine(value):
        value.close()
        raise InvalidTask(
            f"Step {call.name} calls an `async def` function from a plain handler",
            hint="Make the handler `async def`, or the function plain.",
        )
    return value


def sibling_async(main: asyncio.Task[Any] | None) -> asyncio.Task[Any] | None:
    """Return the current task if it is not the handler's own, as within asyncio.gather."""
    current = asyncio.current_task()
    return None if current is main else current


def sibling(main: object) -> Any:  # noqa: ARG001 - as sibling_async
    """Return None: a thread has no end that the handler could wait for."""
    return

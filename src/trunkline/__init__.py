"""A platform for background work in Python on PostgreSQL alone."""

from typing import TYPE_CHECKING, Any

from trunkline.version import __version__

if TYPE_CHECKING:
    from trunkline.client import JobHandle, Request, Task, Trunkline, WorkflowHandle
    from trunkline.errors import TrunklineError
    from trunkline.handler import Context, Results, SyncContext
    from trunkline.model import (
        Backoff,
        Breaker,
        Cancel,
        Discard,
        Job,
        JobEvent,
        JobState,
        Retry,
        Schedule,
        Snooze,
        WorkflowEnd,
        WorkflowEvent,
    )

__all__ = [
    "Backoff",
    "Breaker",
    "Cancel",
    "Context",
    "Discard",
    "Job",
    "JobEvent",
    "JobHandle",
    "JobState",
    "Request",
    "Results",
    "Retry",
    "Schedule",
    "Snooze",
    "SyncContext",
    "Task",
    "Trunkline",
    "TrunklineError",
    "WorkflowEnd",
    "WorkflowEvent",
    "WorkflowHandle",
    "__version__",
]

# Names are imported when they are asked for: `trunkline --help` must not wait for the driver.
_HOMES = {
    "Backoff": "trunkline.model",
    "Breaker": "trunkline.model",
    "Cancel": "trunkline.model",
    "Context": "trunkline.handler",
    "Discard": "trunkline.model",
    "Job": "trunkline.model",
    "JobEvent": "trunkline.model",
    "JobHandle": "trunkline.client",
    "JobState": "trunkline.model",
    "Request": "trunkline.client.request",
    "Results": "trunkline.handler",
    "Retry": "trunkline.model",
    "Schedule": "trunkline.model",
    "Snooze": "trunkline.model",
    "SyncContext": "trunkline.handler",
    "Task": "trunkline.client.task",
    "Trunkline": "trunkline.client.application",
    "TrunklineError": "trunkline.errors",
    "WorkflowEnd": "trunkline.model",
    "WorkflowEvent": "trunkline.model",
    "WorkflowHandle": "trunkline.client",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'trunkline' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - as above

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

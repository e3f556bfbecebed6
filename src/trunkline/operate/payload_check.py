"""Checks an edited payload against the handler that will receive it."""

from collections.abc import Mapping
from typing import Any, Protocol

from trunkline.db.call import json_text
from trunkline.errors import InvalidArgument

__all__ = ["HandledTask", "check_payload"]


class _Schema(Protocol):
    def decode(self, document: str | bytes) -> object: ...


class HandledTask(Protocol):
    """A task of an application, as `@app.task` returns it."""

    @property
    def schema(self) -> _Schema:
        """The parameters of its handler."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names under which its jobs are stored."""


def check_payload(task: HandledTask, name: str, payload: Mapping[str, Any]) -> None:
    """Raise PayloadMismatch if the handler does not take the payload."""
    if name not in task.names:
        raise InvalidArgument(
            "the job is of another task",
            hint="Pass the task that runs the job.",
            detail={"task": task.names[0], "job_task": name},
        )
    task.schema.decode(json_text(payload))

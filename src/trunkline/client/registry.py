"""The tasks of one application by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trunkline.client.task import Task

__all__ = ["Registry"]


class Registry(dict[str, "Task[..., Any]"]):
    """Name to task. Aliases are no keys: each task is listed once."""

    @property
    def handlers(self) -> dict[str, Task[..., Any]]:
        """The task that runs jobs of a name, by names and aliases."""
        return {name: task for task in self.values() for name in task.names}

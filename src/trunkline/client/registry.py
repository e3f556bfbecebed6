"""The tasks of one application by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trunkline.client.task import Task

__all__ = ["Registry"]


class Registry(dict[str, "Task[..., Any]"]):
    """Name to task."""

"""Checks of a workflow before the database is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from trunkline.client.request import Request
from trunkline.errors import InvalidWorkflow

__all__ = ["find_cycle", "step_options"]

# Options of a request that a step cannot have, and what to use instead.
_NOT_OF_STEPS: Final = {
    "run_at": "Use delay=: it counts from the moment at which the step can start.",
    "idempotency_key": "Pass it to app.workflow: the whole workflow is one request.",
    "tenant": "Pass it to app.workflow: all jobs of a workflow have one tenant.",
    "correlation_id": "Pass it to app.workflow: it applies to all jobs.",
    "accepted": "A workflow is accepted or refused as a whole.",
    "connection": "Pass it to start: workflow.start(connection=connection).",
}


def step_options(request: Request[Any]) -> dict[str, Any]:
    """Return the options of a request as a step has them; refuse those that it cannot have."""
    options = request.options
    for name, hint in _NOT_OF_STEPS.items():
        if getattr(options, name) is not None:
            raise InvalidWorkflow(
                f"A step of {request.task} has the option {name}",
                hint=hint,
            )
    return options.as_fields()


def find_cycle(edges: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the steps of a cycle, with the first one again at the end; empty if there is none."""
    done: set[str] = set()
    for start in edges:
        path: list[str] = []
        # Steps to visit; None leaves the newest step of the path.
        stack: list[str | None] = [start]
        while stack:
            step = stack.pop()
            if step is None:
                done.add(path.pop())
            elif step in path:
                return [*path[path.index(step) :], step]
            elif step not in done:
                path.append(step)
                stack.append(None)
                stack.extend(edges[step])
    return []

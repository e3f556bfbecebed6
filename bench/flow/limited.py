"""Puts limited jobs into a database."""

import json
from collections.abc import Mapping
from typing import Any

import psycopg

from bench import fill

__all__ = ["QUEUE", "TASK", "Parts", "fill_limited", "set_limit"]

QUEUE = "flow"
TASK = "limited"

# The capacities of a limit, by the names of its parts.
Parts = Mapping[str, Any]


def set_limit(connection: psycopg.Connection, name: str, **parts: Any) -> None:
    """Create or change a limit."""
    connection.execute("select trunkline.set_limit(%s, %s::jsonb)", (name, json.dumps(parts)))


def fill_limited(
    connection: psycopg.Connection,
    jobs: int,
    limits: Mapping[str, Parts],
    *,
    keys: int = 1,
    task: str = TASK,
    queue: str = QUEUE,
) -> None:
    """Enqueue jobs under these limits; ``{key}`` in a name takes this many values."""
    for name, parts in limits.items():
        set_limit(connection, name, **parts)
    connection.execute(
        "select trunkline.register_task(p_task => %s, p_limits => %s)", (task, list(limits))
    )
    fill.ready(connection, jobs, queue=queue, task=task, keys=keys)

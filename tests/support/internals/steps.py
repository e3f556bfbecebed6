"""Recorded steps, events and waits that no view shows."""

from typing import Any

import psycopg

__all__ = ["children_state", "once_results", "recorded", "sent_events", "take_over", "workflows"]

Superuser = psycopg.Connection[Any]


def recorded(superuser: Superuser) -> list[tuple[Any, ...]]:
    """Return kind, name, key and result of all recorded steps, in their order."""
    return superuser.execute(
        "select kind, name, key, result from trunkline_internal.recorded_steps order by place"
    ).fetchall()


def once_results(superuser: Superuser) -> list[tuple[str, Any]]:
    """Return name and result of all steps that run once for a workflow."""
    return superuser.execute("select name, result from trunkline_internal.once_steps").fetchall()


def sent_events(superuser: Superuser) -> list[str]:
    """Return the names of all sent events."""
    return [row[0] for row in superuser.execute("select name from trunkline_internal.sent_events")]


def take_over(superuser: Superuser) -> None:
    """Let another worker run the next attempt of all running jobs, past every guard."""
    with superuser.transaction():
        superuser.execute("set local session_replication_role = replica")
        superuser.execute(
            "update trunkline_internal.running set worker = 'other', attempt = attempt + 1"
        )


def workflows(superuser: Superuser) -> list[tuple[Any, ...]]:
    """Return kind, state and parent of all workflows."""
    return superuser.execute(
        "select kind, state, parent_job from trunkline_internal.workflows"
    ).fetchall()


def children_state(superuser: Superuser) -> list[str]:
    """Return the states of the jobs of the task child."""
    rows = superuser.execute("select state from trunkline.jobs where task = 'child'")
    return [state for (state,) in rows]

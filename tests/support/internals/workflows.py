"""Workflows: what no view shows, and changes that no function makes."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb

__all__ = [
    "drop_ended_jobs",
    "drop_waiting_jobs",
    "expire_waiting",
    "extend_step",
    "insert_old",
    "lapse_leases",
    "live_locks",
    "marks",
    "move_ends",
    "move_starts",
    "pass_deadline",
    "remove_task",
    "row_version",
    "set_duration",
    "start_children",
    "stop_kinds",
]

Superuser = psycopg.Connection[Any]


def expire_waiting(superuser: Superuser) -> None:
    """Let all waiting jobs that can expire do so."""
    superuser.execute(
        "update trunkline_internal.waiting set expires_at = trunkline.clock() - interval '1 second'"
        " where expires_at is not null"
    )


def lapse_leases(superuser: Superuser) -> None:
    """Let the leases of all running jobs end."""
    superuser.execute(
        "update trunkline_internal.running"
        " set lease_expires_at = claimed_at + interval '1 microsecond'"
    )


def marks(superuser: Superuser) -> list[UUID]:
    """Return the workflows that calls have left to the duty."""
    rows = superuser.execute("select workflow_id from trunkline_internal.workflow_marks")
    return [workflow for (workflow,) in rows]


def pass_deadline(superuser: Superuser, workflow: UUID) -> None:
    """Let the deadline of a workflow pass."""
    superuser.execute(
        "update trunkline_internal.workflows set deadline = trunkline.clock()"
        " where workflow_id = %s and deadline is not null",
        (workflow,),
    )


def move_starts(superuser: Superuser, by: str) -> None:
    """Let all workflows have started that much earlier."""
    superuser.execute(
        "update trunkline_internal.workflows set created_at = created_at - %s::interval", (by,)
    )


def move_ends(superuser: Superuser, by: str) -> None:
    """Let all workflows have ended that much earlier."""
    superuser.execute(
        "update trunkline_internal.workflows set ended_at = ended_at - %s::interval"
        " where ended_at is not null",
        (by,),
    )


def live_locks(observer: Superuser) -> list[str]:
    """Return the modes of the locks of workflows that sessions hold or wait for."""
    rows = observer.execute(
        "select mode || case when granted then '' else ' waits' end from pg_locks"
        " where locktype = 'advisory' and classid = 1953657446"
        "   and database = (select oid from pg_database where datname = current_database())"
        " order by 1"
    )
    return [str(mode) for (mode,) in rows]


def set_duration(superuser: Superuser, workflow: UUID, seconds: float) -> None:
    """Let an ended workflow have taken this long."""
    superuser.execute(
        "update trunkline_internal.workflows"
        " set ended_at = created_at + make_interval(secs => %s) where workflow_id = %s",
        (seconds, workflow),
    )


def row_version(superuser: Superuser, workflow: UUID) -> str:
    """Return a text that differs after every write to the row of the workflow."""
    row = superuser.execute(
        "select xmin::text from trunkline_internal.workflows where workflow_id = %s", (workflow,)
    ).fetchone()
    assert row is not None
    version: str = row[0]
    return version


def extend_step(superuser: Superuser, workflow: UUID, place: int, jobs: int) -> None:
    """Let a step that has completed be open again, with that many jobs."""
    superuser.execute(
        "update trunkline_internal.workflow_steps set state = 'open', items = %s"
        " where workflow_id = %s and place = %s",
        (jobs, workflow, place),
    )


def start_children(superuser: Superuser, parent: UUID, graph: Mapping[str, Any]) -> UUID:
    """Start a workflow of child jobs without suspending their parent; return its id."""
    row = superuser.execute(
        "select (trunkline_internal.store_workflow("
        "p_graph => %s, p_parent => %s, p_depth => 1)).workflow_id",
        (Jsonb(dict(graph)), parent),
    ).fetchone()
    assert row is not None
    workflow: UUID = row[0]
    return workflow


def insert_old(
    superuser: Superuser,
    *,
    stopped: bool = False,
    reason: str | None = None,
    is_late: bool = False,
    is_child: bool = False,
) -> None:
    """Insert a live workflow as it was before the kind of its stop was stored."""
    superuser.execute(
        "insert into trunkline_internal.workflows"
        " (workflow_id, created_at, name, cancel_requested_at, reason, deadline, parent_job)"
        " values (gen_random_uuid(), now(), 'old', case when %(stopped)s then now() end,"
        "  %(reason)s, now() + case when %(is_late)s then '-1 hour' else '1 hour' end::interval,"
        "  case when %(is_child)s then gen_random_uuid() end)",
        {"stopped": stopped, "reason": reason, "is_late": is_late, "is_child": is_child},
    )


def stop_kinds(superuser: Superuser) -> list[str | None]:
    """Return what stopped each workflow."""
    rows = superuser.execute("select stop_kind from trunkline_internal.workflows")
    return [kind for (kind,) in rows]


def drop_ended_jobs(superuser: Superuser) -> None:
    """Drop all days of finished jobs and bodies, after the results that are still needed
    were copied, as the duty does with days that have expired."""
    with superuser.transaction():
        superuser.execute("select trunkline_internal.rescue_results('-infinity', 'infinity')")
        superuser.execute("set local session_replication_role = replica")
        superuser.execute("delete from trunkline_internal.finished")
        superuser.execute("delete from trunkline_internal.bodies")


def drop_waiting_jobs(superuser: Superuser) -> None:
    """Lose all waiting jobs, past every guard, so that their workflows never end by themselves."""
    with superuser.transaction():
        superuser.execute("set local session_replication_role = replica")
        superuser.execute("delete from trunkline_internal.waiting")


def remove_task(superuser: Superuser, task: str) -> None:
    """Remove a task, which no function does."""
    superuser.execute("delete from trunkline_internal.tasks where task = %s", (task,))

"""The functions and views that a tenant role may use.

All of them use only the rows of the caller's tenant. `verify` accepts exactly these grants to roles
that it does not know.
"""

from __future__ import annotations

from typing import Final

__all__ = ["FUNCTIONS", "SCHEMA", "VIEWS", "grants"]

SCHEMA: Final = "trunkline"
FUNCTIONS: Final = (
    "artifact",
    "cancel",
    "cancel_workflow",
    "clock",
    "count_jobs",
    "delete_artifact",
    "enqueue",
    "enqueue_batch",
    "enqueue_many",
    "explain",
    "find_jobs",
    "find_workflows",
    "follow",
    "job",
    "job_steps",
    "list_artifacts",
    "list_jobs",
    "live_jobs",
    "live_workflows",
    "resolve_job",
    "schema_version",
    "search_jobs",
    "send_event",
    "start_workflow",
    "tenant_scope",
    "workflow_jobs",
    "workflow_progress",
    "workflow_results",
)
VIEWS: Final = ("artifacts", "jobs", "workflow_steps", "workflows")


def grants(role: str) -> str:
    """Return the grants that make ``role`` a tenant role. Run them as the owner."""
    functions = ", ".join(f"{SCHEMA}.{name}" for name in FUNCTIONS)
    views = ", ".join(f"{SCHEMA}.{name}" for name in VIEWS)
    escaped = role.replace('"', '""')
    return (
        f'grant usage on schema {SCHEMA} to "{escaped}";\n'
        f'grant execute on function {functions} to "{escaped}";\n'
        f'grant select on {views} to "{escaped}";\n'
    )

"""The columns of a job in results, generated from sql/job_row.toml by make generate."""

from typing import Final, LiteralString

__all__ = ["DETAIL", "LISTED"]

LISTED: Final[LiteralString] = (
    "job_id, state, task, queue, priority, tenant, attempt, failures, max_attempts, deferrals, "
    "created_at, run_at, claimed_at, heartbeat_at, lease_expires_at, cancel_requested_at, "
    "finished_at, worker, progress, phase, message, reason, unique_key, correlation_id, retry_of, "
    "tags, last_error, acknowledged_at, expires_at, error_group, workflow_id"
)
DETAIL: Final[LiteralString] = (
    "job_id, state, task, queue, priority, tenant, payload, result, attempt, failures, crashes, "
    "deferrals, max_attempts, created_at, run_at, claimed_at, heartbeat_at, lease_expires_at, "
    "hard_deadline, cancel_requested_at, finished_at, acknowledged_at, worker, progress, phase, "
    "message, reason, unique_key, correlation_id, retry_of, tags, last_error, errors, expires_at, "
    "error_group, workflow_id, workflow_step, workflow_item"
)

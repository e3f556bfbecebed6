"""Looking at jobs."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Final, LiteralString
from uuid import UUID

from trunkline.db.call import Call, Row, rows_of
from trunkline.model import Explanation, Job, JobState

__all__ = ["detailed_jobs", "explain", "job", "list_jobs"]

_DETAIL: Final[LiteralString] = """
select job_id, state, task, queue, priority, tenant, payload, result, attempt, failures, crashes,
  deferrals, max_attempts, created_at, run_at, claimed_at, heartbeat_at, lease_expires_at,
  hard_deadline, cancel_requested_at, finished_at, acknowledged_at, worker, progress, phase,
  message, reason, unique_key, correlation_id, retry_of, tags, last_error, errors
from trunkline.job(p_job => %s::uuid)
"""
_DETAIL_NAMES: Final = tuple(field.name for field in fields(Job))

_LIST: Final[LiteralString] = """
select job_id, state, task, queue, priority, tenant, attempt, failures, max_attempts, deferrals,
  created_at, run_at, claimed_at, heartbeat_at, lease_expires_at, cancel_requested_at, finished_at,
  worker, progress, phase, message, reason, unique_key, correlation_id, retry_of, tags, last_error
from trunkline.list_jobs(
  p_states => %s::text[], p_task => %s, p_queue => %s, p_tenant => %s, p_limit => %s::integer,
  p_before => %s::uuid
)
"""
_LIST_NAMES: Final = [
    "id",
    "state",
    "task",
    "queue",
    "priority",
    "tenant",
    "attempt",
    "failures",
    "max_attempts",
    "deferrals",
    "created_at",
    "run_at",
    "claimed_at",
    "heartbeat_at",
    "lease_expires_at",
    "cancel_requested_at",
    "finished_at",
    "worker",
    "progress",
    "phase",
    "message",
    "reason",
    "unique_key",
    "correlation_id",
    "retry_of",
    "tags",
    "last_error",
]


def job(job_id: UUID) -> Call[Job | None]:
    """One job wherever it is, with its bodies and the errors of its attempts; None if unknown."""

    def decode(rows: Sequence[Row]) -> Job | None:
        return _job(_DETAIL_NAMES, rows[0]) if rows else None

    return Call(_DETAIL, (job_id,), decode)


def detailed_jobs(ids: LiteralString) -> Call[list[Job]]:
    """The same of every job whose id a query gives."""
    columns = _DETAIL.partition("from trunkline.job")[0]
    return Call(
        columns + "from (" + ids + ") as asked (asked)"
        " cross join lateral trunkline.job(p_job => asked.asked)",
        (),
        lambda rows: [_job(_DETAIL_NAMES, row) for row in rows],
    )


def list_jobs(
    *,
    states: Sequence[JobState] | None,
    task: str | None,
    queue: str | None,
    tenant: str | None,
    limit: int,
    before: UUID | None,
) -> Call[list[Job]]:
    """Jobs, newest first, without their bodies."""
    names = None if states is None else [str(state) for state in states]
    return Call(
        _LIST,
        (names, task, queue, tenant, limit, before),
        lambda rows: [_job(_LIST_NAMES, row) for row in rows],
    )


def explain(job_id: UUID) -> Call[list[Explanation]]:
    """Why a job is not running, and until when."""
    return Call(
        "select reason, until, detail from trunkline.explain(p_job => %s::uuid)",
        (job_id,),
        rows_of(Explanation),
    )


def _job(names: Sequence[str], row: Row) -> Job:
    values: dict[str, Any] = dict(zip(names, row, strict=True))
    values["state"] = JobState(values["state"])
    values["tags"] = tuple(values["tags"] or ())
    if "errors" in values:
        values["errors"] = tuple(values["errors"] or ())
    return Job(**values)

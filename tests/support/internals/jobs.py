"""Rows of jobs: columns that no view shows, and changes that no function makes."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import psycopg

__all__ = [
    "all_due",
    "all_jobs",
    "as_enqueued",
    "bring_forward",
    "cost_tokens",
    "error_group",
    "first_of_lane",
    "inserted_running",
    "last_of_lane",
    "last_sequence",
    "make_due",
    "reassign",
    "renumber",
    "request_fields",
    "unpromoted",
    "waiting_in_order",
]

Superuser = psycopg.Connection[Any]

_ALL = """
select job_id, state, attempt, failures, crashes, deferrals, priority, run_at, worker,
  cancel_requested_at is not null, unique_key, max_attempts, errors
from trunkline_internal.all_jobs
cross join lateral (
  select count(*) as errors from trunkline_internal.events as e
  where e.job_id = all_jobs.job_id and e.kind in ('failed', 'lost')
) as e
"""
_AS_ENQUEUED = """
select
  w.task, w.queue, w.lane, w.state, w.tenant, w.payload, w.max_attempts, w.tags, w.correlation_id,
  w.bucket, w.cost_requests, w.cost_tokens, w.cost_units, w.limit_ids, w.bucket_ids,
  w.payload_day is null, round(extract(epoch from w.run_at - w.created_at)),
  rank() over (order by w.sequence nulls last)
from unnest(%s::uuid[]) with ordinality as j (job_id, place)
join trunkline_internal.waiting as w on w.job_id = j.job_id
order by j.place
"""
_INSERT_RUNNING = """
insert into trunkline_internal.running (
  job_id, sequence, claimed_at, lease_expires_at, hard_deadline, run_at, created_at, attempt,
  failures, crashes, deferrals, max_attempts, lane, audit, queue, task, worker, payload
)
select
  job_id, 1, now(), now() + '1 minute', now() + '1 minute', run_at, created_at, {attempt},
  0, 0, 0, 4, 0, false, queue, task, 'w', '{{}}'
from {source}
"""


def all_jobs(superuser: Superuser) -> list[tuple[Any, ...]]:
    """Return every job from all tables, with its counts; a job in two tables is returned twice."""
    return superuser.execute(_ALL).fetchall()


def waiting_in_order(superuser: Superuser) -> list[UUID]:
    """Return all waiting jobs by their sequence numbers."""
    rows = superuser.execute("select job_id from trunkline_internal.waiting order by sequence")
    return [job for (job,) in rows]


def as_enqueued(superuser: Superuser, jobs: Sequence[UUID]) -> list[tuple[Any, ...]]:
    """Return the columns that enqueue wrote, without ids and times, with ranks for sequences."""
    return superuser.execute(_AS_ENQUEUED, (list(jobs),)).fetchall()


def cost_tokens(superuser: Superuser, job: UUID | str) -> int | None:
    """Return the tokens that a claim of this waiting job charges."""
    row = superuser.execute(
        "select cost_tokens from trunkline_internal.waiting where job_id = %s::uuid", (job,)
    ).fetchone()
    assert row is not None
    tokens: int | None = row[0]
    return tokens


def request_fields(superuser: Superuser) -> list[str]:
    """Return the fields of a request that the engine accepts."""
    row = superuser.execute("select trunkline_internal.request_fields('{}')").fetchone()
    assert row is not None
    names: list[str] = row[0]
    return names


def last_sequence(superuser: Superuser) -> int:
    """Return the highest sequence number that was drawn."""
    row = superuser.execute("select last_value from trunkline_internal.job_sequence").fetchone()
    assert row is not None
    sequence: int = row[0]
    return sequence


def first_of_lane(superuser: Superuser, lane: int) -> UUID:
    """Return the ready job that claims take first from a lane."""
    return _of_lane(superuser, lane, "asc")


def last_of_lane(superuser: Superuser, lane: int) -> UUID:
    """Return the ready job that claims take last from a lane."""
    return _of_lane(superuser, lane, "desc")


def _of_lane(superuser: Superuser, lane: int, order: str) -> UUID:
    row = superuser.execute(
        "select job_id from trunkline_internal.waiting where state = 'ready' and lane = %s"
        f" order by sequence {order} limit 1".encode(),
        (lane,),
    ).fetchone()
    assert row is not None
    job_id: UUID = row[0]
    return job_id


def unpromoted(superuser: Superuser) -> int:
    """Count the scheduled jobs that have been due for a second."""
    row = superuser.execute(
        "select count(*) from trunkline_internal.waiting where state = 'scheduled'"
        " and run_at <= trunkline.clock() - interval '1 second'"
    ).fetchone()
    assert row is not None
    jobs: int = row[0]
    return jobs


def all_due(superuser: Superuser) -> bool:
    """True if no scheduled job is due in the future."""
    row = superuser.execute(
        "select max(run_at) < trunkline.clock() from trunkline_internal.waiting"
        " where state = 'scheduled'"
    ).fetchone()
    return row is None or row[0] is not False


def make_due(superuser: Superuser, job: UUID) -> None:
    """Make a scheduled job due now."""
    superuser.execute(
        "update trunkline_internal.waiting set run_at = trunkline.clock() where job_id = %s", (job,)
    )


def bring_forward(superuser: Superuser, by: str) -> None:
    """Make all waiting jobs due earlier by this interval."""
    superuser.execute("update trunkline_internal.waiting set run_at = run_at - %s::interval", (by,))


def renumber(superuser: Superuser, sequence: int) -> None:
    """Give the waiting job an earlier sequence number, as if its claim had been rolled back."""
    superuser.execute("update trunkline_internal.waiting set sequence = %s", (sequence,))


def reassign(superuser: Superuser, job: UUID, worker: str = "other") -> None:
    """Give the attempt to another worker, so that its present worker has lost it."""
    superuser.execute(
        "update trunkline_internal.running set worker = %s where job_id = %s", (worker, job)
    )


def inserted_running(attempt: int, source: str = "trunkline_internal.waiting") -> str:
    """Return the statement that copies waiting jobs into the table of running ones."""
    return _INSERT_RUNNING.format(attempt=attempt, source=source)


def error_group(superuser: Superuser, kind: str, message: str) -> str:
    """Return the error group of dead letters with this error."""
    row = superuser.execute(
        "select trunkline_internal.error_group_of(jsonb_build_object("
        "'type', %s::text, 'message', %s::text), null)",
        (kind, message),
    ).fetchone()
    assert row is not None
    group: str = row[0]
    return group

"""What happened lately, for following the queue like a log."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, LiteralString, NamedTuple
from uuid import UUID

from trunkline.db.call import Call, Row

__all__ = ["Event", "RecentJob", "Recently", "recently"]

# One statement, hence one snapshot: a job is in one table only. Live jobs made lately are found by
# their ids, which begin with the time; those that ended by when they did, which skips the
# partitions of other days. Events tell what is out of the ordinary, and all of audited tasks.
_RECENTLY: Final[LiteralString] = """
with asked as (
  select %s::text as task, %s::text as queue, %s::bigint as most
),
found as (
  (
    select j.job_id, j.state, j.task, j.queue, j.tenant, j.attempt, j.created_at, j.run_at,
      j.claimed_at, j.finished_at, j.worker, j.reason, j.last_error
    from trunkline.jobs as j
    where j.state in ('blocked', 'scheduled', 'ready', 'running')
      and j.job_id >= %s::uuid
      and ((select a.task from asked as a) is null or j.task = (select a.task from asked as a))
      and ((select a.queue from asked as a) is null or j.queue = (select a.queue from asked as a))
    order by j.job_id desc
    limit (select a.most from asked as a)
  )
  union all
  (
    select j.job_id, j.state, j.task, j.queue, j.tenant, j.attempt, j.created_at, j.run_at,
      j.claimed_at, j.finished_at, j.worker, j.reason, j.last_error
    from trunkline.jobs as j
    where j.state = 'running'
      and j.claimed_at >= %s::timestamptz
      and ((select a.task from asked as a) is null or j.task = (select a.task from asked as a))
      and ((select a.queue from asked as a) is null or j.queue = (select a.queue from asked as a))
    order by j.claimed_at desc
    limit (select a.most from asked as a)
  )
  union all
  (
    select j.job_id, j.state, j.task, j.queue, j.tenant, j.attempt, j.created_at, j.run_at,
      j.claimed_at, j.finished_at, j.worker, j.reason, j.last_error
    from trunkline.jobs as j
    where j.state in ('completed', 'cancelled', 'dead')
      and j.finished_at >= %s::timestamptz
      and ((select a.task from asked as a) is null or j.task = (select a.task from asked as a))
      and ((select a.queue from asked as a) is null or j.queue = (select a.queue from asked as a))
    order by j.finished_at desc
    limit (select a.most from asked as a)
  )
),
happened as (
  select e.at, e.kind, e.job_id, e.to_state, e.task, e.queue, e.tenant, e.attempt, e.worker,
    e.detail
  from trunkline.events as e
  where e.at >= %s::timestamptz
    and ((select a.task from asked as a) is null or e.task = (select a.task from asked as a))
    and ((select a.queue from asked as a) is null or e.queue = (select a.queue from asked as a))
  order by e.at desc
  limit (select a.most from asked as a)
)
select trunkline.clock(), null::text, null, null, null, null, null, null, null, null, null, null,
  null, null, null, null::jsonb
union all
select null, null, f.job_id, f.state, f.task, f.queue, f.tenant, f.attempt, f.created_at, f.run_at,
  f.claimed_at, f.finished_at, f.worker, f.reason, f.last_error, null
from found as f
union all
select h.at, h.kind, h.job_id, h.to_state, h.task, h.queue, h.tenant, h.attempt, null, null, null,
  null, h.worker, null, null, h.detail
from happened as h
"""


class RecentJob(NamedTuple):
    """A job that was made, claimed or ended lately."""

    job_id: UUID
    state: str
    task: str
    queue: str
    tenant: str | None
    attempt: int
    created_at: datetime
    run_at: datetime | None
    claimed_at: datetime | None
    finished_at: datetime | None
    worker: str | None
    reason: str | None
    last_error: dict[str, Any] | None


class Event(NamedTuple):
    """Something recorded about a job."""

    at: datetime
    kind: str
    job_id: UUID
    to_state: str | None
    task: str
    queue: str
    tenant: str | None
    attempt: int
    worker: str | None
    detail: dict[str, Any] | None


class Recently(NamedTuple):
    """The engine's time at the look, and what it found, in no order."""

    now: datetime
    jobs: list[RecentJob]
    events: list[Event]


def recently(
    since: datetime, *, task: str | None, queue: str | None, most: int | None
) -> Call[Recently]:
    """Jobs made, claimed or ended since then, and events; at most so many of each, newest."""
    return Call(_RECENTLY, (task, queue, most, _first_id(since), since, since, since), _read)


def _first_id(since: datetime) -> UUID:
    """The lowest UUIDv7 of that millisecond."""
    return UUID(int=max(0, int(since.timestamp() * 1000)) << 80)


def _read(rows: Sequence[Row]) -> Recently:
    jobs, events = [], []
    for row in rows[1:]:
        if row[0] is None:
            jobs.append(RecentJob._make(row[2:15]))
        else:
            events.append(Event._make((*row[0:8], row[12], row[15])))
    return Recently(rows[0][0], jobs, events)

"""The plain side: the core of the functions, as prepared statements on the same tables.

This is the fastest form we know: one statement for a claim and one for a completion, a literal
limit, a position that the client keeps. It checks nothing, promotes nothing and loses late commits.
"""

from typing import LiteralString

__all__ = ["CLAIM", "COMPLETE", "INSERT_JSON", "INSERT_ONE", "INSERT_UNNEST", "SESSION"]

# The functions have these as SET clauses.
SESSION: LiteralString = """
set enable_seqscan = off;
set jit = off;
set enable_bitmapscan = off;
set enable_mergejoin = off;
set plan_cache_mode = force_generic_plan
"""

CLAIM: LiteralString = """
with taken as (
  delete from trunkline_internal.waiting as w
  where w.ctid = any(array(
    select p.tid
    from unnest(%(queues)b::text[], %(lanes)b::smallint[], %(floors)b::bigint[])
      as l (queue, lane, floor)
    cross join lateral (
      select w.ctid as tid
      from trunkline_internal.waiting as w
      where w.queue = l.queue
        and w.lane = l.lane
        and w.state = 'ready'
        and w.sequence > l.floor
      order by w.sequence
      limit 100
      for update of w skip locked
    ) as p
    limit 100
  ))
  returning w.*
),
held as (
  insert into trunkline_internal.running (
    job_id, sequence, claimed_at, lease_expires_at, hard_deadline, run_at, created_at,
    deferred_since, attempt, payload_day, failures, crashes, deferrals, max_attempts, lane, audit,
    queue, task, worker, tenant, unique_key, correlation_id, retry_of, tags, payload, last_error
  )
  select
    w.job_id, w.sequence, v.now,
    v.now + coalesce(t.lease, interval '300 seconds'),
    v.now + coalesce(t.hard_limit, 4 * coalesce(t.lease, interval '300 seconds')),
    w.run_at, w.created_at, w.deferred_since, w.attempt + 1, w.payload_day, w.failures, w.crashes,
    w.deferrals, w.max_attempts, w.lane, t.audit, w.queue, w.task, %(worker)b::text, w.tenant,
    w.unique_key, w.correlation_id, w.retry_of, w.tags, w.payload, w.last_error
  from taken as w
  join trunkline_internal.tasks as t on t.task = w.task
  cross join (select clock_timestamp() as now) as v
  returning *
)
select
  h.job_id, h.attempt, h.task, h.queue, h.lane >> 1,
  case when h.payload_day is null then h.payload else (
    select b.body
    from trunkline_internal.bodies as b
    where b.job_id = h.job_id and b.kind = 'payload' and b.day = h.payload_day
  ) end,
  h.tenant, h.correlation_id, h.tags, h.failures, h.deferrals, h.max_attempts, h.created_at,
  h.run_at, h.claimed_at, h.lease_expires_at, h.hard_deadline, h.last_error, h.lane, h.sequence
from held as h
order by h.queue, h.lane desc, h.sequence
"""

COMPLETE: LiteralString = """
with asked as materialized (
  select a.job_id, a.attempt
  from unnest(%(jobs)b::uuid[], %(attempts)b::integer[]) as a (job_id, attempt)
  order by a.job_id
),
ended as (
  delete from trunkline_internal.running as r
  using asked as a
  where r.job_id = a.job_id and r.attempt = a.attempt and r.worker = %(worker)b::text
  returning r.*
)
insert into trunkline_internal.finished as f (
  job_id, finished_at, claimed_at, run_at, created_at, attempt, payload_day, failures, deferrals,
  max_attempts, priority, state, queue, task, worker, tenant, unique_key, correlation_id, retry_of,
  tags, payload, last_error
)
select
  e.job_id, v.now, e.claimed_at, e.run_at, e.created_at, e.attempt, e.payload_day, e.failures,
  e.deferrals, e.max_attempts, e.lane >> 1, 'completed', e.queue, e.task, e.worker, e.tenant,
  e.unique_key, e.correlation_id, e.retry_of, e.tags, e.payload, e.last_error
from ended as e
cross join (select clock_timestamp() as now) as v
returning f.job_id, f.attempt
"""

_INSERT: LiteralString = """
insert into trunkline_internal.waiting as w (
  job_id, sequence, run_at, created_at, max_attempts, lane, state, queue, task, payload
)
select
  gen_random_uuid(), nextval('trunkline_internal.job_sequence'), v.now, v.now, 4, 0, 'ready',
  'default', j.task, j.payload::jsonb
from {source}
cross join (select clock_timestamp() as now) as v
returning w.job_id, w.state, w.run_at
"""

INSERT_JSON: LiteralString = _INSERT.format(
    source="json_to_recordset(%(jobs)s::json) as j (task text, payload jsonb)"
)
INSERT_UNNEST: LiteralString = _INSERT.format(
    source="unnest(%(tasks)b::text[], %(payloads)b::text[]) as j (task, payload)"
)
INSERT_ONE: LiteralString = _INSERT.format(
    source="(select %(task)b::text as task, %(payload)b::text as payload) as j"
)

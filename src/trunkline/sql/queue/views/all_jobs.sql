-- All jobs from the four job tables, with null for columns that a table lacks; the view jobs and the function job read it.
-- prune_by is finished_at for finished jobs and infinity for others, so that a bound on it skips partitions.
create or replace view trunkline_internal.all_jobs as
select
  w.job_id, w.state, w.task, w.queue, (w.lane >> 1)::integer as priority, w.tenant, w.payload, w.payload_day,
  null::jsonb as result, null::date as result_day, w.attempt, w.failures::integer as failures,
  w.crashes::integer as crashes, w.deferrals, w.max_attempts::integer as max_attempts, w.created_at, w.run_at,
  null::timestamptz as claimed_at, null::timestamptz as heartbeat_at, null::timestamptz as lease_expires_at,
  null::timestamptz as hard_deadline, null::timestamptz as cancel_requested_at, null::timestamptz as finished_at,
  null::timestamptz as acknowledged_at, null::text as worker, null::integer as progress, null::text as phase,
  null::text as message, w.reason, w.unique_key, w.correlation_id, w.retry_of, w.tags, w.last_error,
  'infinity'::timestamptz as prune_by
from trunkline_internal.waiting as w
union all
select
  r.job_id, 'running', r.task, r.queue, (r.lane >> 1)::integer, r.tenant, r.payload, r.payload_day,
  null, null, r.attempt, r.failures::integer, r.crashes::integer, r.deferrals, r.max_attempts::integer,
  r.created_at, r.run_at, r.claimed_at, r.heartbeat_at, r.lease_expires_at, r.hard_deadline,
  r.cancel_requested_at, null, null, r.worker, r.progress::integer, r.phase, r.message, r.cancel_reason,
  r.unique_key, r.correlation_id, r.retry_of, r.tags, r.last_error, 'infinity'
from trunkline_internal.running as r
union all
select
  d.job_id, 'dead', d.task, d.queue, d.priority::integer, d.tenant, d.payload, d.payload_day,
  null, null, d.attempt, d.failures::integer, d.crashes::integer, d.deferrals, d.max_attempts::integer,
  d.created_at, d.run_at, d.claimed_at, d.heartbeat_at, null, null, null, d.died_at, d.acknowledged_at, d.worker,
  null, null, null, d.reason, d.unique_key, d.correlation_id, d.retry_of, d.tags, d.last_error, 'infinity'
from trunkline_internal.dead as d
union all
select
  f.job_id, f.state, f.task, f.queue, f.priority::integer, f.tenant, f.payload, f.payload_day,
  f.result, f.result_day, f.attempt, f.failures::integer, null, f.deferrals, f.max_attempts::integer,
  f.created_at, f.run_at, f.claimed_at, f.heartbeat_at, null, null, null, f.finished_at, null, f.worker,
  case when f.state = 'completed' then 100 end, null, null, f.reason, f.unique_key, f.correlation_id,
  f.retry_of, f.tags, f.last_error, f.finished_at
from trunkline_internal.finished as f;
comment on view trunkline_internal.all_jobs is 'All jobs from the four job tables, with null for columns that a table lacks; the view jobs and the function job read it.';

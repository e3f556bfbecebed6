-- All jobs from the four job tables, with null for columns that a table lacks; the view jobs and the function job read it.
-- prune_by is finished_at for finished jobs and infinity for others, so that a bound on it skips partitions.
create or replace view trunkline_internal.all_jobs as
select
  'infinity'::timestamptz as prune_by,
  -- <job shape: all_jobs of w in waiting>
  w.job_id, w.state, w.task, w.queue, (w.lane >> 1)::integer as priority, w.tenant, w.attempt,
  w.failures::integer as failures, w.max_attempts::integer as max_attempts, w.deferrals, w.created_at, w.run_at,
  null::timestamptz as claimed_at, null::timestamptz as heartbeat_at, null::timestamptz as lease_expires_at,
  null::timestamptz as cancel_requested_at, null::timestamptz as finished_at, null::text as worker, null::integer as progress,
  null::text as phase, null::text as message, w.reason, w.unique_key, w.correlation_id, w.retry_of, w.tags, w.last_error,
  w.payload, w.payload_day, null::jsonb as result, null::date as result_day, w.crashes::integer as crashes,
  null::timestamptz as hard_deadline, null::timestamptz as acknowledged_at, w.expires_at, null::text as error_group,
  w.workflow_id, w.workflow_step, w.workflow_item
  -- </job>
from trunkline_internal.waiting as w
union all
select
  'infinity'::timestamptz as prune_by,
  -- <job shape: all_jobs of r in running>
  r.job_id, 'running'::text as state, r.task, r.queue, (r.lane >> 1)::integer as priority, r.tenant, r.attempt,
  r.failures::integer as failures, r.max_attempts::integer as max_attempts, r.deferrals, r.created_at, r.run_at, r.claimed_at,
  r.heartbeat_at, r.lease_expires_at, r.cancel_requested_at, null::timestamptz as finished_at, r.worker,
  r.progress::integer as progress, r.phase, r.message, r.cancel_reason as reason, r.unique_key, r.correlation_id, r.retry_of,
  r.tags, r.last_error, r.payload, r.payload_day, null::jsonb as result, null::date as result_day,
  r.crashes::integer as crashes, r.hard_deadline, null::timestamptz as acknowledged_at, r.expires_at,
  null::text as error_group, r.workflow_id, r.workflow_step, r.workflow_item
  -- </job>
from trunkline_internal.running as r
union all
select
  'infinity'::timestamptz as prune_by,
  -- <job shape: all_jobs of d in dead>
  d.job_id, 'dead'::text as state, d.task, d.queue, d.priority::integer as priority, d.tenant, d.attempt,
  d.failures::integer as failures, d.max_attempts::integer as max_attempts, d.deferrals, d.created_at, d.run_at, d.claimed_at,
  d.heartbeat_at, null::timestamptz as lease_expires_at, null::timestamptz as cancel_requested_at, d.died_at as finished_at,
  d.worker, null::integer as progress, null::text as phase, null::text as message, d.reason, d.unique_key, d.correlation_id,
  d.retry_of, d.tags, d.last_error, d.payload, d.payload_day, null::jsonb as result, null::date as result_day,
  d.crashes::integer as crashes, null::timestamptz as hard_deadline, d.acknowledged_at, d.expires_at, d.error_group,
  d.workflow_id, d.workflow_step, d.workflow_item
  -- </job>
from trunkline_internal.dead as d
union all
select
  f.finished_at as prune_by,
  -- <job shape: all_jobs of f in finished>
  f.job_id, f.state, f.task, f.queue, f.priority::integer as priority, f.tenant, f.attempt, f.failures::integer as failures,
  f.max_attempts::integer as max_attempts, f.deferrals, f.created_at, f.run_at, f.claimed_at, f.heartbeat_at,
  null::timestamptz as lease_expires_at, null::timestamptz as cancel_requested_at, f.finished_at, f.worker,
  (case when f.state = 'completed' then 100 end)::integer as progress, null::text as phase, null::text as message, f.reason,
  f.unique_key, f.correlation_id, f.retry_of, f.tags, f.last_error, f.payload, f.payload_day, f.result, f.result_day,
  null::integer as crashes, null::timestamptz as hard_deadline, null::timestamptz as acknowledged_at, f.expires_at,
  null::text as error_group, f.workflow_id, f.workflow_step, f.workflow_item
  -- </job>
from trunkline_internal.finished as f;
comment on view trunkline_internal.all_jobs is 'All jobs from the four job tables, with null for columns that a table lacks; the view jobs and the function job read it.';

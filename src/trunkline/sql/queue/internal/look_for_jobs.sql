-- Returns a page of jobs, newest first, from the newest p_look rows of each table before an id; null reads all rows.
-- Ids start with their time, so the index on the id of each table has the order of the enqueues (within a millisecond an
-- arbitrary but stable one). Only the tables that hold the given states are read. If many jobs match, little more than the
-- page is read; if few match, p_look bounds it.
-- Called by list_jobs and find_jobs. Reads only. Intended plan: a merge of index scans. Guarded by tests/plans.
create or replace function trunkline_internal.look_for_jobs(
  p_states text[],
  p_task text,
  p_queue text,
  p_tenant text,
  p_limit integer,
  p_before uuid,
  p_look integer,
  p_scope text
)
returns setof trunkline.listed_job
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  c_waiting constant text[] := array['ready', 'scheduled', 'blocked'];
  c_finished constant text[] := array['completed', 'cancelled'];
begin
  return query
  (
    select
      -- <job shape: listed_job of w in waiting>
      w.job_id, w.state, w.task, w.queue, (w.lane >> 1)::integer, w.tenant, w.attempt, w.failures::integer,
      w.max_attempts::integer, w.deferrals, w.created_at, w.run_at, null::timestamptz, null::timestamptz, null::timestamptz,
      null::timestamptz, null::timestamptz, null::text, null::integer, null::text, null::text, w.reason, w.unique_key,
      w.correlation_id, w.retry_of, w.tags, w.last_error, null::timestamptz, w.expires_at, null::text, w.workflow_id
      -- </job>
    from (
      select w.* from trunkline_internal.waiting as w where w.job_id < p_before order by w.job_id desc limit p_look
    ) as w
    where p_states && c_waiting
      and w.state = any(p_states)
      and (p_task is null or w.task = p_task)
      and (p_queue is null or w.queue = p_queue)
      and (p_tenant is null or w.tenant = p_tenant)
      and (p_scope is null or w.tenant = p_scope)
    order by w.job_id desc
    limit p_limit
  )
  union all
  (
    select
      -- <job shape: listed_job of r in running>
      r.job_id, 'running'::text, r.task, r.queue, (r.lane >> 1)::integer, r.tenant, r.attempt, r.failures::integer,
      r.max_attempts::integer, r.deferrals, r.created_at, r.run_at, r.claimed_at, r.heartbeat_at, r.lease_expires_at,
      r.cancel_requested_at, null::timestamptz, r.worker, r.progress::integer, r.phase, r.message, r.cancel_reason,
      r.unique_key, r.correlation_id, r.retry_of, r.tags, r.last_error, null::timestamptz, r.expires_at, null::text,
      r.workflow_id
      -- </job>
    from (
      select r.* from trunkline_internal.running as r where r.job_id < p_before order by r.job_id desc limit p_look
    ) as r
    where 'running' = any(p_states)
      and (p_task is null or r.task = p_task)
      and (p_queue is null or r.queue = p_queue)
      and (p_tenant is null or r.tenant = p_tenant)
      and (p_scope is null or r.tenant = p_scope)
    order by r.job_id desc
    limit p_limit
  )
  union all
  (
    select
      -- <job shape: listed_job of d in dead>
      d.job_id, 'dead'::text, d.task, d.queue, d.priority::integer, d.tenant, d.attempt, d.failures::integer,
      d.max_attempts::integer, d.deferrals, d.created_at, d.run_at, d.claimed_at, d.heartbeat_at, null::timestamptz,
      null::timestamptz, d.died_at, d.worker, null::integer, null::text, null::text, d.reason, d.unique_key, d.correlation_id,
      d.retry_of, d.tags, d.last_error, d.acknowledged_at, d.expires_at, d.error_group, d.workflow_id
      -- </job>
    from (
      select d.* from trunkline_internal.dead as d where d.job_id < p_before order by d.job_id desc limit p_look
    ) as d
    where 'dead' = any(p_states)
      and (p_task is null or d.task = p_task)
      and (p_queue is null or d.queue = p_queue)
      and (p_tenant is null or d.tenant = p_tenant)
      and (p_scope is null or d.tenant = p_scope)
    order by d.job_id desc
    limit p_limit
  )
  union all
  (
    select
      -- <job shape: listed_job of f in finished>
      f.job_id, f.state, f.task, f.queue, f.priority::integer, f.tenant, f.attempt, f.failures::integer,
      f.max_attempts::integer, f.deferrals, f.created_at, f.run_at, f.claimed_at, f.heartbeat_at, null::timestamptz,
      null::timestamptz, f.finished_at, f.worker, (case when f.state = 'completed' then 100 end)::integer, null::text,
      null::text, f.reason, f.unique_key, f.correlation_id, f.retry_of, f.tags, f.last_error, null::timestamptz, f.expires_at,
      null::text, f.workflow_id
      -- </job>
    from (
      select f.* from trunkline_internal.finished as f where f.job_id < p_before order by f.job_id desc limit p_look
    ) as f
    where p_states && c_finished
      and f.state = any(p_states)
      and (p_task is null or f.task = p_task)
      and (p_queue is null or f.queue = p_queue)
      and (p_tenant is null or f.tenant = p_tenant)
      and (p_scope is null or f.tenant = p_scope)
    order by f.job_id desc
    limit p_limit
  )
  order by 1 desc
  limit p_limit;
end;
$$;
comment on function trunkline_internal.look_for_jobs(text[], text, text, text, integer, uuid, integer, text) is 'Returns a page of jobs, newest first, from the newest p_look rows of each table before an id; null reads all rows.';

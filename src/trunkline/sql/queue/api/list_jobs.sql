-- Lists jobs newest first, by state, task, queue and tenant; p_before is the last id of the page before.
-- Null means any. Ids begin with their time, so their order is that of the enqueues (any, but always
-- the same, within a millisecond), and each table gives it by its index on the id: a page costs the rows
-- that are looked at and not the history. Only the tables that hold the given states are opened. Where few jobs fit the filter, the look
-- goes on until the page is full or all jobs were seen.
-- Reads only, in one snapshot. Intended plan: a merge of index scans. Guarded by tests/plans.
create or replace function trunkline.list_jobs(
  p_states text[] default null,
  p_task text default null,
  p_queue text default null,
  p_tenant text default null,
  p_limit integer default 100,
  p_before uuid default null
)
returns setof trunkline.listed_job
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  c_states constant text[] := array['ready', 'scheduled', 'blocked', 'running', 'completed', 'cancelled', 'dead'];
  c_waiting constant text[] := array['ready', 'scheduled', 'blocked'];
  c_finished constant text[] := array['completed', 'cancelled'];
  -- The greatest id there can be: a comparison with it, and not one with null, uses the index.
  v_before uuid := coalesce(p_before, 'ffffffff-ffff-ffff-ffff-ffffffffffff');
  v_scope text := trunkline.tenant_scope();
  v_states text[] := coalesce(p_states, c_states);
begin
  if p_limit is null or p_limit not between 1 and 1000 then
    perform trunkline_internal.refuse(
      p_name => 'limit_out_of_range',
      p_detail => jsonb_build_object('limit', p_limit, 'minimum', 1, 'maximum', 1000)
    );
  end if;
  if cardinality(v_states) > 100 or not v_states <@ c_states then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object('argument', 'p_states', 'must_be', c_states)
    );
  end if;
  return query
  (
    select
      w.job_id, w.state, w.task, w.queue, (w.lane >> 1)::integer, w.tenant, w.attempt, w.failures::integer,
      w.max_attempts::integer, w.deferrals, w.created_at, w.run_at, null::timestamptz, null::timestamptz,
      null::timestamptz, null::timestamptz, null::timestamptz, null::text, null::integer, null::text, null::text,
      w.reason, w.unique_key, w.correlation_id, w.retry_of, w.tags, w.last_error
    from trunkline_internal.waiting as w
    where v_states && c_waiting
      and w.job_id < v_before
      and w.state = any(v_states)
      and (p_task is null or w.task = p_task)
      and (p_queue is null or w.queue = p_queue)
      and (p_tenant is null or w.tenant = p_tenant)
      and (v_scope is null or w.tenant = v_scope)
    order by w.job_id desc
    limit p_limit
  )
  union all
  (
    select
      r.job_id, 'running', r.task, r.queue, (r.lane >> 1)::integer, r.tenant, r.attempt, r.failures::integer,
      r.max_attempts::integer, r.deferrals, r.created_at, r.run_at, r.claimed_at, r.heartbeat_at,
      r.lease_expires_at, r.cancel_requested_at, null, r.worker, r.progress::integer, r.phase, r.message,
      r.cancel_reason, r.unique_key, r.correlation_id, r.retry_of, r.tags, r.last_error
    from trunkline_internal.running as r
    where 'running' = any(v_states)
      and r.job_id < v_before
      and (p_task is null or r.task = p_task)
      and (p_queue is null or r.queue = p_queue)
      and (p_tenant is null or r.tenant = p_tenant)
      and (v_scope is null or r.tenant = v_scope)
    order by r.job_id desc
    limit p_limit
  )
  union all
  (
    select
      d.job_id, 'dead', d.task, d.queue, d.priority::integer, d.tenant, d.attempt, d.failures::integer,
      d.max_attempts::integer, d.deferrals, d.created_at, d.run_at, d.claimed_at, d.heartbeat_at,
      null, null, d.died_at, d.worker, null, null, null,
      d.reason, d.unique_key, d.correlation_id, d.retry_of, d.tags, d.last_error
    from trunkline_internal.dead as d
    where 'dead' = any(v_states)
      and d.job_id < v_before
      and (p_task is null or d.task = p_task)
      and (p_queue is null or d.queue = p_queue)
      and (p_tenant is null or d.tenant = p_tenant)
      and (v_scope is null or d.tenant = v_scope)
    order by d.job_id desc
    limit p_limit
  )
  union all
  (
    select
      f.job_id, f.state, f.task, f.queue, f.priority::integer, f.tenant, f.attempt, f.failures::integer,
      f.max_attempts::integer, f.deferrals, f.created_at, f.run_at, f.claimed_at, f.heartbeat_at,
      null, null, f.finished_at, f.worker, case when f.state = 'completed' then 100 end, null, null,
      f.reason, f.unique_key, f.correlation_id, f.retry_of, f.tags, f.last_error
    from trunkline_internal.finished as f
    where v_states && c_finished
      and f.job_id < v_before
      and f.state = any(v_states)
      and (p_task is null or f.task = p_task)
      and (p_queue is null or f.queue = p_queue)
      and (p_tenant is null or f.tenant = p_tenant)
      and (v_scope is null or f.tenant = v_scope)
    order by f.job_id desc
    limit p_limit
  )
  order by 1 desc
  limit p_limit;
end;
$$;
comment on function trunkline.list_jobs(text[], text, text, text, integer, uuid) is 'Lists jobs newest first, by state, task, queue and tenant; p_before is the last id of the page before.';

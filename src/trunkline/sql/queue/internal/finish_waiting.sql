-- Ends waiting jobs, whose rows the caller has locked, as cancelled; returns those that belong to workflows, null if none does.
-- ready | scheduled | blocked -> cancelled, with one event each. Frees their unique keys. The caller passes what it returns to
-- end_workflow_jobs.
create or replace function trunkline_internal.finish_waiting(p_jobs uuid[], p_reason text, p_now timestamptz)
returns trunkline_internal.workflow_end[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_ended trunkline_internal.workflow_end[];
begin
  insert into trunkline_internal.events (at, job_id, attempt, kind, to_state, task, queue, tenant, actor, detail)
  select
    p_now, w.job_id, w.attempt, 'cancelled', 'cancelled', w.task, w.queue, w.tenant, session_user,
    jsonb_build_object('reason', left(p_reason, 500), 'from', w.state)
  from trunkline_internal.waiting as w
  where w.job_id = any(p_jobs);
  delete from trunkline_internal.unique_keys as k where k.job_id = any(p_jobs);
  delete from trunkline_internal.set_aside as a where a.job_id = any(p_jobs);
  with gone as (
    delete from trunkline_internal.waiting as w where w.job_id = any(p_jobs) returning w.*
  ),
  kept as (
    insert into trunkline_internal.finished (
      state, finished_at, reason,
      -- <job columns: waiting to finished>
      job_id, task, queue, priority, tenant, attempt, failures, max_attempts, deferrals, created_at, run_at, unique_key,
      correlation_id, retry_of, tags, last_error, payload, payload_day, expires_at, workflow_id, workflow_step, workflow_item
      -- </job>
    )
    select
      'cancelled', p_now, coalesce(left(p_reason, 500), 'cancelled'),
      -- <job values: g>
      g.job_id, g.task, g.queue, g.lane >> 1, g.tenant, g.attempt, g.failures, g.max_attempts, g.deferrals, g.created_at,
      g.run_at, g.unique_key, g.correlation_id, g.retry_of, g.tags, g.last_error, g.payload, g.payload_day, g.expires_at,
      g.workflow_id, g.workflow_step, g.workflow_item
      -- </job>
    from gone as g
  )
  select array_agg(row(
    g.workflow_id, g.workflow_step, g.workflow_item, g.job_id, 'cancelled', g.cost_requests, g.cost_tokens, g.cost_units, g.limit_ids,
    g.bucket_ids
  )::trunkline_internal.workflow_end) filter (where g.workflow_id is not null)
  into v_ended
  from gone as g;
  perform trunkline_internal.notify_followers(p_ids => p_jobs);
  return v_ended;
end;
$$;
comment on function trunkline_internal.finish_waiting(uuid[], text, timestamptz) is 'Ends waiting jobs, whose rows the caller has locked, as cancelled; returns those that belong to workflows, null if none does.';

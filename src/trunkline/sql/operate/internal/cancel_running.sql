-- Asks the workers of those of these jobs that run to stop; returns the ids of all that run.
-- running -> running. A job that was asked before keeps its first request. Locks rows of running in id order.
create or replace function trunkline_internal.cancel_running(p_jobs uuid[], p_reason text, p_scope text, p_now timestamptz)
returns uuid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_asked uuid[];
  v_jobs uuid[];
begin
  v_jobs := array(
    select r.job_id
    from trunkline_internal.running as r
    where r.job_id = any(p_jobs) and (p_scope is null or r.tenant = p_scope)
    order by r.job_id
    for update of r
  );
  with asked as (
    update trunkline_internal.running as r
    set cancel_requested_at = p_now, cancel_reason = left(p_reason, 500)
    where r.job_id = any(v_jobs) and r.cancel_requested_at is null
    returning r.job_id, r.attempt, r.task, r.queue, r.tenant, r.worker
  ),
  noted as (
    insert into trunkline_internal.events (at, job_id, attempt, kind, to_state, task, queue, tenant, worker, actor, detail)
    select
      p_now, a.job_id, a.attempt, 'cancel_requested', 'running', a.task, a.queue, a.tenant, a.worker, session_user,
      jsonb_build_object('reason', left(p_reason, 500))
    from asked as a
  )
  select array_agg(a.job_id) into v_asked from asked as a;
  perform pg_notify('trunkline_cancel', a.job_id::text) from unnest(v_asked) as a (job_id);
  perform trunkline_internal.notify_followers(p_ids => v_asked);
  return v_jobs;
end;
$$;
comment on function trunkline_internal.cancel_running(uuid[], text, text, timestamptz) is 'Asks the workers of those of these jobs that run to stop; returns the ids of all that run.';

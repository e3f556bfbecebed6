-- Cancels those of these jobs that wait, at once; returns their ids. The caller's tenant must own them.
-- ready | scheduled | blocked -> cancelled. Locks rows of waiting in id order.
create or replace function trunkline_internal.cancel_waiting(p_jobs uuid[], p_reason text, p_scope text, p_now timestamptz)
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
  v_jobs uuid[];
begin
  v_jobs := array(
    select w.job_id
    from trunkline_internal.waiting as w
    where w.job_id = any(p_jobs) and (p_scope is null or w.tenant = p_scope)
    order by w.job_id
    for update of w
  );
  if cardinality(v_jobs) = 0 then
    return v_jobs;
  end if;
  insert into trunkline_internal.events (at, job_id, attempt, kind, to_state, task, queue, tenant, actor, detail)
  select
    p_now, w.job_id, w.attempt, 'cancelled', 'cancelled', w.task, w.queue, w.tenant, session_user,
    jsonb_build_object('reason', left(p_reason, 500), 'from', w.state)
  from trunkline_internal.waiting as w
  where w.job_id = any(v_jobs);
  delete from trunkline_internal.unique_keys as k where k.job_id = any(v_jobs);
  delete from trunkline_internal.set_aside as a where a.job_id = any(v_jobs);
  with gone as (
    delete from trunkline_internal.waiting as w where w.job_id = any(v_jobs) returning w.*
  )
  insert into trunkline_internal.finished (
    state, finished_at, reason,
    -- <job columns: waiting to finished>
    job_id, task, queue, priority, tenant, attempt, failures, max_attempts, deferrals, created_at, run_at, unique_key,
    correlation_id, retry_of, tags, last_error, payload, payload_day, expires_at
    -- </job>
  )
  select
    'cancelled', p_now, coalesce(left(p_reason, 500), 'cancelled'),
    -- <job values: g>
    g.job_id, g.task, g.queue, g.lane >> 1, g.tenant, g.attempt, g.failures, g.max_attempts, g.deferrals, g.created_at,
    g.run_at, g.unique_key, g.correlation_id, g.retry_of, g.tags, g.last_error, g.payload, g.payload_day, g.expires_at
    -- </job>
  from gone as g;
  return v_jobs;
end;
$$;
comment on function trunkline_internal.cancel_waiting(uuid[], text, text, timestamptz) is 'Cancels those of these jobs that wait, at once; returns their ids. The caller''s tenant must own them.';

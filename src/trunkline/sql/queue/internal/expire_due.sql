-- Ends jobs that have not started their first attempt by their expires_at, at most p_limit; returns how many.
-- ready | scheduled | blocked -> cancelled with reason expired, one event each. Frees their unique keys.
-- Called by claim and by the duty expire. Locks the rows it ends, the earliest first, and skips locked ones.
-- Guarded by tests/plans.
create or replace function trunkline_internal.expire_due(p_now timestamptz, p_limit integer)
returns integer
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
  v_jobs uuid[];
begin
  v_jobs := array(
    select w.job_id
    from trunkline_internal.waiting as w
    where w.attempt = 0 and w.expires_at <= p_now
    order by w.expires_at
    limit p_limit
    for update of w skip locked
  );
  if cardinality(v_jobs) = 0 then
    return 0;
  end if;
  insert into trunkline_internal.events (at, job_id, attempt, kind, to_state, task, queue, tenant, actor, detail)
  select
    p_now, w.job_id, w.attempt, 'cancelled', 'cancelled', w.task, w.queue, w.tenant, session_user,
    jsonb_build_object('reason', 'expired', 'from', w.state, 'expires_at', w.expires_at)
  from trunkline_internal.waiting as w
  where w.job_id = any(v_jobs);
  delete from trunkline_internal.unique_keys as k where k.job_id = any(v_jobs);
  delete from trunkline_internal.set_aside as a where a.job_id = any(v_jobs);
  with expired as (
    delete from trunkline_internal.waiting as w where w.job_id = any(v_jobs) returning w.*
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
      'cancelled', p_now, 'expired',
      -- <job values: e>
      e.job_id, e.task, e.queue, e.lane >> 1, e.tenant, e.attempt, e.failures, e.max_attempts, e.deferrals, e.created_at,
      e.run_at, e.unique_key, e.correlation_id, e.retry_of, e.tags, e.last_error, e.payload, e.payload_day, e.expires_at,
      e.workflow_id, e.workflow_step, e.workflow_item
      -- </job>
    from expired as e
  )
  select array_agg(row(
    e.workflow_id, e.workflow_step, e.workflow_item, e.job_id, 'cancelled', e.cost_requests, e.cost_tokens, e.cost_units, e.limit_ids,
    e.bucket_ids
  )::trunkline_internal.workflow_end) filter (where e.workflow_id is not null)
  into v_ended
  from expired as e;
  perform trunkline_internal.notify_followers(p_ids => v_jobs);
  if v_ended is not null then
    perform trunkline_internal.end_workflow_jobs(p_ended => v_ended, p_now => p_now, p_wait => false);
  end if;
  return cardinality(v_jobs);
end;
$$;
comment on function trunkline_internal.expire_due(timestamptz, integer) is 'Ends jobs that have not started their first attempt by their expires_at, at most p_limit; returns how many.';

-- Locks the running row of an attempt until the commit, and returns it; refuses an attempt that the worker no longer owns.
-- The lock only keeps the attempt from ending: heartbeats, and other calls about its steps, do not wait for it.
-- Calls after a cancel request record with the attempt that it was received, as heartbeat does.
create or replace function trunkline_internal.hold_attempt(p_worker text, p_job uuid, p_attempt integer)
returns trunkline_internal.running
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_running trunkline_internal.running;
  v_scope text := trunkline.tenant_scope();
begin
  perform trunkline_internal.check_batch(
    p_worker => p_worker, p_jobs => array[p_job], p_attempts => array[p_attempt], p_others => '{}'
  );
  select r.* into v_running
  from trunkline_internal.running as r
  where r.job_id = p_job
    and r.attempt = p_attempt
    and r.worker = p_worker
    and (v_scope is null or r.tenant = v_scope)
  for key share of r;
  if not found then
    perform trunkline_internal.refuse(
      p_name => 'stale_attempt',
      p_detail => jsonb_build_object(
        'worker', p_worker, 'attempts', jsonb_build_array(jsonb_build_object('job', p_job, 'attempt', p_attempt))
      )
    );
  end if;
  if v_running.cancel_requested_at is not null and v_running.cancel_answered_at is null then
    update trunkline_internal.running as r set cancel_answered_at = trunkline.clock() where r.job_id = p_job;
  end if;
  return v_running;
end;
$$;
comment on function trunkline_internal.hold_attempt(text, uuid, integer) is 'Locks the running row of an attempt until the commit, and returns it; refuses an attempt that the worker no longer owns.';

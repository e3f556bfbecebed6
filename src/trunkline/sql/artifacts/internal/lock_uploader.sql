-- Locks a running attempt against its end and returns it; refuses one that the worker no longer owns.
create or replace function trunkline_internal.lock_uploader(p_worker text, p_job uuid, p_attempt integer)
returns trunkline_internal.running
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_running trunkline_internal.running%rowtype;
  v_scope text := trunkline.tenant_scope();
begin
  perform trunkline_internal.check_batch(
    p_worker => p_worker, p_jobs => array[p_job], p_attempts => array[p_attempt], p_others => '{}'
  );
  -- A key share lock lets heartbeats pass, and makes the end of the attempt wait.
  select r.*
  into v_running
  from trunkline_internal.running as r
  where r.job_id = p_job and r.attempt = p_attempt and r.worker = p_worker and (v_scope is null or r.tenant = v_scope)
  for key share of r;
  if not found then
    perform trunkline_internal.refuse(
      p_name => 'stale_attempt', p_detail => jsonb_build_object('job', p_job, 'attempt', p_attempt, 'worker', p_worker)
    );
  end if;
  return v_running;
end;
$$;
comment on function trunkline_internal.lock_uploader(text, uuid, integer) is 'Locks a running attempt against its end and returns it; refuses one that the worker no longer owns.';

-- The heartbeat of a third-party worker; ours extends all its leases in one call of the engine.
-- requires: record
-- source: 000200

create or replace function executor.update_job_heartbeat(p_job_id uuid, p_worker_id text, p_attempt integer default null)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := trunkline.clock();
  v_ok boolean;
begin
  if p_job_id is null or p_worker_id is null or p_worker_id = '' or length(p_worker_id) > 200 then
    return false;
  end if;
  -- Without an attempt, only the worker's name is the fence.
  select v.verdict = 'ok' into v_ok
  from trunkline.stale_monitor as m
  cross join lateral trunkline.heartbeat(
    p_worker => p_worker_id, p_jobs => array[m.job_id], p_attempts => array[coalesce(p_attempt, m.attempt)]
  ) as v
  where m.job_id = p_job_id and m.worker = p_worker_id;
  v_ok := coalesce(v_ok, false);
  insert into executor.executor_heartbeats as h (worker_id, calls, refused, last_at)
  values (p_worker_id, 1, (not v_ok)::integer, v_now)
  on conflict (worker_id) do update
  set calls = h.calls + 1, refused = h.refused + excluded.refused, last_at = excluded.last_at;
  delete from executor.executor_heartbeats as h where h.last_at < v_now - interval '1 day';
  return v_ok;
end;
$$;
comment on function executor.update_job_heartbeat(uuid, text, integer) is 'Extends the lease of a job that this worker runs; false if the job is not running, belongs to another worker, is past its hard limit or is to be cancelled: stop and discard.';

revoke all on function executor.update_job_heartbeat(uuid, text, integer) from public;
grant execute on function executor.update_job_heartbeat(uuid, text, integer) to trunkline_worker;

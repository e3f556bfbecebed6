-- Locks the given running attempts that belong to the worker, in id order, and returns their jobs.
-- Uses arrays instead of a join: if the table was empty at the last ANALYZE, the planner would make it the outer side of
-- a join and read all of it, in any order (see complete). If a job is given twice, only the higher attempt counts, because
-- no other can be running.
create or replace function trunkline_internal.lock_running(p_worker text, p_jobs uuid[], p_attempts integer[], p_scope text)
returns uuid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
set enable_bitmapscan = off
as $$
declare
  v_attempts integer[];
  v_jobs uuid[];
begin
  select array_agg(a.job_id), array_agg(a.attempt)
  into v_jobs, v_attempts
  from (
    select a.job_id, a.attempt from unnest(p_jobs, p_attempts) as a (job_id, attempt) order by a.job_id, a.attempt
  ) as a;
  return array(
    select r.job_id
    from trunkline_internal.running as r
    where r.job_id = any(v_jobs)
      and r.attempt = v_attempts[width_bucket(r.job_id, v_jobs)]
      and r.worker = p_worker
      and (p_scope is null or r.tenant = p_scope)
    order by r.job_id
    for update of r
  );
end;
$$;
comment on function trunkline_internal.lock_running(text, uuid[], integer[], text) is 'Locks the given running attempts that belong to the worker, in id order, and returns their jobs.';

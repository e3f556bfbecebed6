-- Locks the running attempts that really are the worker's, in id order, and tells which.
create or replace function trunkline_internal.lock_running(p_worker text, p_jobs uuid[], p_attempts integer[], p_scope text)
returns uuid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return array(
    select r.job_id
    from trunkline_internal.running as r
    join unnest(p_jobs, p_attempts) as a (job_id, attempt) on a.job_id = r.job_id and a.attempt = r.attempt
    where r.worker = p_worker and (p_scope is null or r.tenant = p_scope)
    order by r.job_id
    for update of r
  );
end;
$$;
comment on function trunkline_internal.lock_running(text, uuid[], integer[], text) is 'Locks the running attempts that really are the worker''s, in id order, and tells which.';

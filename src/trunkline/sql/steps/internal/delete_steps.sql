-- Deletes recorded steps of a job, all of them or those of a name and key; returns how many. What it waits for stays.
-- Child jobs that an earlier attempt waited for count as recorded unless the job is suspended: the next attempt starts others.
create or replace function trunkline_internal.delete_steps(p_job uuid, p_name text, p_key text)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_done integer;
  v_waits integer;
begin
  delete from trunkline_internal.recorded_steps as s
  where s.job_id = p_job
    and s.day >= trunkline_internal.steps_since(p_job => p_job)
    and (p_name is null or s.name = p_name)
    and (p_key is null or s.key = p_key);
  get diagnostics v_done = row_count;
  -- Their files go with them. Those of steps that run once for a workflow are not the job's alone.
  update trunkline_internal.staged_artifacts as a
  set kept = false
  where a.job_id = p_job
    and a.kept
    and a.step_key is distinct from '#once'
    and (p_name is null or a.step = p_name)
    and (p_key is null or a.step_key is null or a.step_key = p_key);
  delete from trunkline_internal.job_waits as w
  where w.job_id = p_job
    and w.kind = 'jobs'
    and (p_name is null or w.name = p_name)
    and (p_key is null or w.key = p_key)
    and not exists (
      select from trunkline_internal.waiting as j where j.job_id = p_job and j.reason = 'suspended'
    );
  get diagnostics v_waits = row_count;
  return v_done + v_waits;
end;
$$;
comment on function trunkline_internal.delete_steps(uuid, text, text) is 'Deletes recorded steps of a job, all of them or those of a name and key; returns how many. What it waits for stays.';

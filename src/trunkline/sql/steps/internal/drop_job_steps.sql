-- Deletes what steps and waits have left of jobs that are deleted: recorded steps, waits, events sent to them, and their once results.
-- Events that were sent to a key stay: another job may wait for them. Once results of a workflow belong to it, not to a job.
create or replace function trunkline_internal.drop_job_steps(p_jobs uuid[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_since date;
begin
  if cardinality(p_jobs) = 0 then
    return;
  end if;
  select min(trunkline_internal.steps_since(p_job => j.id)) into v_since from unnest(p_jobs) as j (id);
  delete from trunkline_internal.recorded_steps as s where s.job_id = any(p_jobs) and s.day >= v_since;
  delete from trunkline_internal.job_waits as w where w.job_id = any(p_jobs);
  delete from trunkline_internal.sent_events as e where e.job_id = any(p_jobs);
  delete from trunkline_internal.once_steps as o where o.scope = any(p_jobs);
end;
$$;
comment on function trunkline_internal.drop_job_steps(uuid[]) is 'Deletes what steps and waits have left of jobs that are deleted: recorded steps, waits, events sent to them, and their once results.';

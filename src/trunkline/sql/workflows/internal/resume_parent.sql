-- Makes the job that waits for a workflow of child jobs ready again, once the workflow has ended and the job is suspended.
-- blocked | scheduled -> ready. The caller holds the workflow's lock, so a parent whose row is locked is left to the duty
-- sweep_steps: the holder of the row may wait for the lock of another workflow.
create or replace function trunkline_internal.resume_parent(p_workflow uuid)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform trunkline_internal.resume_jobs(
    p_jobs => array(
      select w.job_id from trunkline_internal.job_waits as w where w.reference = p_workflow and w.kind = 'jobs'
    ),
    p_cause => 'jobs', p_wait => false
  );
end;
$$;
comment on function trunkline_internal.resume_parent(uuid) is 'Makes the job that waits for a workflow of child jobs ready again, once the workflow has ended and the job is suspended.';

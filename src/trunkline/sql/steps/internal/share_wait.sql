-- Tries to share the lock of what a job waits for; false if the event is being sent, the step recorded, or the workflow ended at this moment.
create or replace function trunkline_internal.share_wait(p_wait trunkline_internal.job_waits)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_wait.kind = 'sleep' then
    return true;
  elsif p_wait.kind = 'jobs' then
    -- The end of a workflow holds this lock exclusively; see lock_workflow.
    return pg_try_advisory_xact_lock_shared(1953657446, uuid_hash(p_wait.reference));
  end if;
  return pg_try_advisory_xact_lock_shared(1953657500, trunkline_internal.wait_lock(
    p_job => p_wait.job_id, p_tenant => p_wait.tenant, p_address => p_wait.address, p_scope => p_wait.reference,
    p_name => p_wait.name
  ));
end;
$$;
comment on function trunkline_internal.share_wait(trunkline_internal.job_waits) is 'Tries to share the lock of what a job waits for; false if the event is being sent, the step recorded, or the workflow ended at this moment.';

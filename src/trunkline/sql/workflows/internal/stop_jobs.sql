-- Cancels all jobs of a workflow that have not started and asks the running ones to stop; steps without a running job are cancelled.
-- ready | scheduled | blocked -> cancelled; running -> running. The caller holds the workflow's lock. Rows that other
-- transactions have locked are left to the duty, which calls this again while the workflow is live.
create or replace function trunkline_internal.stop_jobs(p_workflow trunkline_internal.workflows, p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
as $$
declare
  v_jobs uuid[];
  v_places integer[];
  v_reason text := coalesce(p_workflow.reason, 'workflow cancelled');
begin
  update trunkline_internal.workflow_steps as s
  set state = 'cancelled', reason = 'workflow', ended_at = p_now
  where s.workflow_id = p_workflow.workflow_id
    and (s.state = 'blocked' or (s.state = 'open' and (s.items is null or s.expanded < s.items)));
  v_places := array(
    select distinct w.workflow_step from trunkline_internal.waiting as w where w.workflow_id = p_workflow.workflow_id
  );
  if cardinality(v_places) > 0 then
    perform trunkline_internal.cancel_step_jobs(
      p_workflow => p_workflow.workflow_id, p_places => v_places, p_reason => v_reason, p_now => p_now
    );
  end if;
  v_jobs := array(
    select r.job_id
    from trunkline_internal.running as r
    where r.workflow_id = p_workflow.workflow_id and r.cancel_requested_at is null
    order by r.job_id
    for update of r skip locked
  );
  if cardinality(v_jobs) > 0 then
    perform trunkline_internal.cancel_running(p_jobs => v_jobs, p_reason => v_reason, p_scope => null, p_now => p_now);
  end if;
  if exists (
    select from trunkline_internal.running as r where r.workflow_id = p_workflow.workflow_id and r.cancel_requested_at is null
  ) then
    perform trunkline_internal.mark_workflows(p_workflows => array[p_workflow.workflow_id], p_now => p_now);
  end if;
end;
$$;
comment on function trunkline_internal.stop_jobs(trunkline_internal.workflows, timestamptz) is 'Cancels all jobs of a workflow that have not started and asks the running ones to stop; steps without a running job are cancelled.';

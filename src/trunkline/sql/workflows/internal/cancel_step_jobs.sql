-- Cancels the waiting jobs of these steps of a workflow and records their ends; marks the workflow if another transaction has locked some.
-- ready | scheduled | blocked -> cancelled. The caller holds the workflow's lock and has decided what becomes of the steps.
create or replace function trunkline_internal.cancel_step_jobs(p_workflow uuid, p_places integer[], p_reason text, p_now timestamptz)
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
begin
  v_jobs := array(
    select w.job_id
    from trunkline_internal.waiting as w
    where w.workflow_id = p_workflow and w.workflow_step = any(p_places)
    order by w.job_id
    for update of w skip locked
  );
  if exists (
    select
    from trunkline_internal.waiting as w
    where w.workflow_id = p_workflow and w.workflow_step = any(p_places)
    offset cardinality(v_jobs)
  ) then
    perform trunkline_internal.mark_workflows(p_workflows => array[p_workflow], p_now => p_now);
  end if;
  if cardinality(v_jobs) > 0 then
    perform trunkline_internal.record_workflow_ends(
      p_ended => trunkline_internal.finish_waiting(p_jobs => v_jobs, p_reason => p_reason, p_now => p_now), p_now => p_now
    );
  end if;
end;
$$;
comment on function trunkline_internal.cancel_step_jobs(uuid, integer[], text, timestamptz) is 'Cancels the waiting jobs of these steps of a workflow and records their ends; marks the workflow if another transaction has locked some.';

-- Ends a workflow of which nothing is live: records its state, frees its unique key, enqueues its callback, and resumes the job that waits for it.
-- Completed if all its steps are; otherwise cancelled if that was requested or its parent has ended; failed if its deadline
-- stopped it, a job is dead, or a map could not be expanded. The caller holds the workflow's lock, so it ends once for each generation.
create or replace function trunkline_internal.end_workflow(p_workflow trunkline_internal.workflows, p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_all_completed boolean;
  v_any_failed boolean;
  v_workflow trunkline_internal.workflows := p_workflow;
begin
  select bool_and(s.state = 'completed'), bool_or(s.state = 'failed')
  into v_all_completed, v_any_failed
  from trunkline_internal.workflow_steps as s
  where s.workflow_id = p_workflow.workflow_id;
  v_workflow.state := case
    when v_all_completed then 'completed'
    when p_workflow.cancel_requested_at is not null then case when p_workflow.stop_kind = 'deadline' then 'failed' else 'cancelled' end
    when v_any_failed then 'failed'
    else 'cancelled'
  end;
  update trunkline_internal.workflows as w
  set state = v_workflow.state, ended_at = p_now, callback_error = null
  where w.workflow_id = p_workflow.workflow_id;
  delete from trunkline_internal.workflow_keys as k where k.workflow_id = p_workflow.workflow_id and k.kind = 'unique';
  perform trunkline_internal.call_back(p_workflow => v_workflow);
  perform trunkline_internal.notify_followers(p_ids => array[p_workflow.workflow_id]);
  if p_workflow.parent_job is not null then
    perform trunkline_internal.resume_parent(p_workflow => p_workflow.workflow_id);
  end if;
end;
$$;
comment on function trunkline_internal.end_workflow(trunkline_internal.workflows, timestamptz) is 'Ends a workflow of which nothing is live: records its state, frees its unique key, enqueues its callback, and resumes the job that waits for it.';

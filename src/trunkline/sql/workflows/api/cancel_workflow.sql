-- Cancels a workflow: jobs that have not started end at once, running ones are asked to stop; returns requested, cancelled or ended.
-- ready | scheduled | blocked -> cancelled; running -> running. When nothing runs any more the workflow ends, cancelled unless
-- all its jobs had completed, and its callback on_cancel is enqueued. Locks the workflow; skips rows that others have locked,
-- which the duty advance_workflows cancels.
create or replace function trunkline.cancel_workflow(p_workflow uuid, p_reason text default null)
returns trunkline.changed_workflow
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz;
  v_workflow trunkline_internal.workflows;
begin
  perform trunkline_internal.require_read_committed();
  v_workflow := trunkline_internal.visible_workflow(p_workflow => p_workflow, p_lock => true);
  v_now := trunkline.clock();
  if v_workflow.state <> 'live' then
    return row(p_workflow, 'ended', v_workflow.state, v_workflow.jobs)::trunkline.changed_workflow;
  end if;
  perform trunkline_internal.request_stop(
    p_workflow => p_workflow, p_kind => 'cancel', p_reason => coalesce(nullif(left(p_reason, 500), ''), 'cancelled'), p_now => v_now
  );
  perform trunkline_internal.log_action(
    p_action => 'cancel_workflow', p_kind => 'workflow', p_object => p_workflow::text,
    p_before => jsonb_build_object('state', v_workflow.state, 'name', v_workflow.name),
    p_after => jsonb_build_object('cancel_requested', true, 'name', v_workflow.name), p_reason => p_reason,
    p_tenant => v_workflow.tenant
  );
  return (
    select row(
      p_workflow, case when w.state = 'live' then 'requested' else 'cancelled' end,
      trunkline_internal.workflow_state(p_workflow => p_workflow, p_state => w.state), w.jobs
    )::trunkline.changed_workflow
    from trunkline_internal.workflows as w
    where w.workflow_id = p_workflow
  );
end;
$$;
comment on function trunkline.cancel_workflow(uuid, text) is 'Cancels a workflow: jobs that have not started end at once, running ones are asked to stop; returns requested, cancelled or ended.';

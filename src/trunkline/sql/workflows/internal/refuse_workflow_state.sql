-- Refuses a call that a workflow's state does not allow; the detail names the state and those that allow it.
create or replace function trunkline_internal.refuse_workflow_state(p_workflow trunkline_internal.workflows, p_allowed text[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform trunkline_internal.refuse(
    p_name => 'wrong_workflow_state',
    p_detail => jsonb_build_object(
      'workflow', p_workflow.workflow_id, 'allowed', p_allowed,
      'state', trunkline_internal.workflow_state(p_workflow => p_workflow.workflow_id, p_state => p_workflow.state)
    )
  );
end;
$$;
comment on function trunkline_internal.refuse_workflow_state(trunkline_internal.workflows, text[]) is 'Refuses a call that a workflow''s state does not allow; the detail names the state and those that allow it.';

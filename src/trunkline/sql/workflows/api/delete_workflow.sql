-- Deletes an ended workflow permanently, with its steps, its jobs and their payloads, results and files; events stay.
-- completed | cancelled | dead -> none. Refused while it is live, or while a rerun uses its results.
-- Locks the workflow, then rows of dead in id order.
create or replace function trunkline.delete_workflow(p_workflow uuid)
returns trunkline.changed_workflow
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_number integer;
  v_rerun uuid;
  v_workflow trunkline_internal.workflows;
begin
  perform trunkline_internal.require_read_committed();
  v_workflow := trunkline_internal.visible_workflow(p_workflow => p_workflow, p_lock => true);
  if v_workflow.state = 'live' then
    perform trunkline_internal.refuse_workflow_state(p_workflow => v_workflow, p_allowed => array['completed', 'failed', 'cancelled']);
  end if;
  select w.workflow_id into v_rerun from trunkline_internal.workflows as w where w.rerun_of = p_workflow limit 1;
  if found then
    perform trunkline_internal.refuse(
      p_name => 'wrong_workflow_state',
      p_detail => jsonb_build_object('workflow', p_workflow, 'state', v_workflow.state, 'used_by', v_rerun)
    );
  end if;
  v_number := trunkline_internal.remove_workflow(p_workflow => p_workflow, p_jobs => true);
  perform trunkline_internal.log_action(
    p_action => 'delete_workflow', p_kind => 'workflow', p_object => p_workflow::text,
    p_before => jsonb_build_object('state', v_workflow.state, 'name', v_workflow.name, 'jobs', v_workflow.jobs), p_after => null,
    p_tenant => v_workflow.tenant
  );
  return row(p_workflow, 'deleted', null, v_number)::trunkline.changed_workflow;
end;
$$;
comment on function trunkline.delete_workflow(uuid) is 'Deletes an ended workflow permanently, with its steps, its jobs and their payloads, results and files; events stay.';

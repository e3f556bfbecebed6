-- Runs the dead part of a workflow again: its dead jobs with new attempts, then the steps that were cancelled because of them.
-- dead -> ready; cancelled -> blocked. Completed jobs are not repeated. A map that could not be expanded is tried again. A
-- workflow that had ended is live again in its next generation. Refused if there is nothing to retry: a workflow that its
-- deadline or a cancel request stopped may have no dead job.
-- Locks rows of dead in id order, then unique keys, then the workflow.
create or replace function trunkline.retry_workflow(p_workflow uuid)
returns trunkline.changed_workflow
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_held uuid[];
  v_jobs uuid[];
  v_maps integer[];
  v_now timestamptz := trunkline.clock();
  v_workflow trunkline_internal.workflows;
begin
  perform trunkline_internal.require_read_committed();
  v_workflow := trunkline_internal.visible_workflow(p_workflow => p_workflow);
  if v_workflow.state = 'live' and v_workflow.cancel_requested_at is not null then
    perform trunkline_internal.refuse_workflow_state(p_workflow => v_workflow, p_allowed => array['running', 'failed', 'cancelled']);
  end if;
  select r.replayed, r.held
  into v_jobs, v_held
  from trunkline_internal.replay_dead(
    p_jobs => array(select d.job_id from trunkline_internal.dead as d where d.workflow_id = p_workflow), p_scope => null
  ) as r;
  if cardinality(v_held) > 0 then
    perform trunkline_internal.refuse(
      p_name => 'unique_key_held', p_detail => jsonb_build_object('workflow', p_workflow, 'jobs', to_jsonb(v_held))
    );
  end if;
  perform trunkline_internal.lock_workflow(p_workflow => p_workflow);
  v_maps := array(
    select s.place
    from trunkline_internal.workflow_steps as s
    where s.workflow_id = p_workflow and s.kind = 'map' and s.state = 'failed' and (s.items is null or s.expanded < s.items)
  );
  if cardinality(v_maps) > 0 then
    perform trunkline_internal.reopen_workflow(p_workflow => p_workflow, p_places => v_maps, p_items => v_maps, p_now => v_now);
    perform pg_notify('trunkline_duties', 'expand_workflows');
  end if;
  if cardinality(v_jobs) = 0 and cardinality(v_maps) = 0 then
    v_workflow := trunkline_internal.visible_workflow(p_workflow => p_workflow);
    if v_workflow.state in ('failed', 'cancelled') then
      perform trunkline_internal.refuse(
        p_name => 'nothing_to_retry',
        p_detail => jsonb_build_object('workflow', p_workflow, 'state', v_workflow.state, 'reason', v_workflow.reason)
      );
    end if;
    perform trunkline_internal.refuse_workflow_state(p_workflow => v_workflow, p_allowed => array['failed']);
  end if;
  perform trunkline_internal.log_action(
    p_action => 'retry_workflow', p_kind => 'workflow', p_object => p_workflow::text,
    p_before => jsonb_build_object('state', v_workflow.state, 'name', v_workflow.name, 'generation', v_workflow.generation),
    p_after => jsonb_build_object('name', v_workflow.name, 'jobs', cardinality(v_jobs)), p_tenant => v_workflow.tenant
  );
  return row(p_workflow, 'retried', 'running', cardinality(v_jobs))::trunkline.changed_workflow;
end;
$$;
comment on function trunkline.retry_workflow(uuid) is 'Runs the dead part of a workflow again: its dead jobs with new attempts, then the steps that were cancelled because of them.';

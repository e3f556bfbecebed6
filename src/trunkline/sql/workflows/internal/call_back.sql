-- Enqueues the callback for the state in which a workflow has ended, and that for every end, if it has them: once for each generation.
-- none -> ready. A field of the payload that is {"$workflow": true} becomes an object with id, name, state, generation, reason
-- and the first hundred jobs that failed. A refusal does not keep the workflow from ending: it is recorded in callback_error.
create or replace function trunkline_internal.call_back(p_workflow trunkline_internal.workflows)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_detail text;
  v_end jsonb;
  v_failed jsonb;
  v_key text := format('workflow:%s:%s', p_workflow.workflow_id, p_workflow.generation);
  v_state_callback jsonb := case p_workflow.state
    when 'completed' then p_workflow.on_completed
    when 'failed' then p_workflow.on_failure
    when 'cancelled' then p_workflow.on_cancel
  end;
  v_template jsonb;
begin
  if v_state_callback is null and p_workflow.on_end is null then
    return;
  end if;
  select coalesce(jsonb_agg(f.job order by f.step, f.item), '[]')
  into v_failed
  from (
    select
      e.step, e.item,
      jsonb_build_object(
        'step', s.name, 'item', case when s.kind <> 'job' then e.item end, 'job', e.job_id, 'reason', d.reason
      ) as job
    from trunkline_internal.workflow_ends as e
    join trunkline_internal.workflow_steps as s on s.workflow_id = e.workflow_id and s.place = e.step
    left join trunkline_internal.dead as d on d.job_id = e.job_id
    where e.workflow_id = p_workflow.workflow_id and e.state = 'dead'
    order by e.step, e.item
    limit 100
  ) as f;
  v_end := jsonb_build_object(
    'id', p_workflow.workflow_id, 'name', p_workflow.name, 'state', p_workflow.state, 'generation', p_workflow.generation,
    'reason', p_workflow.reason, 'failed', v_failed
  );
  for v_template, v_key in
    select c.template, c.key
    from (values (1, v_state_callback, v_key), (2, p_workflow.on_end, v_key || ':end')) as c (number, template, key)
    where c.template is not null
    order by c.number
  loop
    begin
      perform trunkline_internal.enqueue_each(p_jobs => jsonb_build_array(v_template || jsonb_build_object(
        'payload', (
          select coalesce(jsonb_object_agg(e.key, case when e.value = '{"$workflow": true}' then v_end else e.value end), '{}')
          from jsonb_each(nullif(v_template -> 'payload', 'null')) as e
        ),
        'priority', coalesce(nullif(v_template -> 'priority', 'null'), to_jsonb(p_workflow.priority)),
        'tenant', p_workflow.tenant,
        'idempotency_key', v_key,
        'correlation_id', p_workflow.correlation_id,
        'accepted', trunkline.tenant_scope() is null
      )));
    exception
      when others then
        if sqlstate !~ '^TL' then
          raise;
        end if;
        get stacked diagnostics v_detail = pg_exception_detail;
        update trunkline_internal.workflows as w
        set callback_error = (v_detail::jsonb - 'index') || jsonb_build_object('sqlstate', sqlstate, 'message', sqlerrm)
        where w.workflow_id = p_workflow.workflow_id;
        raise warning 'callback of workflow % could not be enqueued: % (%)', p_workflow.workflow_id, sqlerrm, sqlstate;
    end;
  end loop;
end;
$$;
comment on function trunkline_internal.call_back(trunkline_internal.workflows) is 'Enqueues the callback for the state in which a workflow has ended, and that for every end, if it has them: once for each generation.';

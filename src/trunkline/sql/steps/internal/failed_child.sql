-- Returns the first job of a workflow that is dead, or else cancelled, with its reason and error; the workflow alone if there is none.
create or replace function trunkline_internal.failed_child(p_workflow uuid)
returns jsonb
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_child jsonb;
begin
  select jsonb_strip_nulls(jsonb_build_object(
    'job', e.job_id, 'state', e.state, 'reason', coalesce(d.reason, f.reason), 'error', coalesce(d.last_error, f.last_error)
  ))
  into v_child
  from (
    select e.*
    from trunkline_internal.workflow_ends as e
    where e.workflow_id = p_workflow and e.state <> 'completed'
    order by e.state desc, e.step, e.item
    limit 1
  ) as e
  left join trunkline_internal.dead as d on d.job_id = e.job_id
  left join lateral (
    select f.reason, f.last_error
    from trunkline_internal.finished as f
    where f.job_id = e.job_id and f.finished_at = e.finished_at
    limit 1
  ) as f on true;
  return jsonb_build_object('workflow', p_workflow) || coalesce(v_child, '{}');
end;
$$;
comment on function trunkline_internal.failed_child(uuid) is 'Returns the first job of a workflow that is dead, or else cancelled, with its reason and error; the workflow alone if there is none.';

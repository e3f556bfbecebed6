-- Returns the requests of the next p_number jobs of a map: the template of its step with an element in place of each {"$item": true}.
-- p_elements begins with element p_first.
-- Over the array of one job, the element itself is put in; if it could be read as a reference, within {"$value": …}. Over a set of
-- jobs, a reference to the result of the job with the same index is.
create or replace function trunkline_internal.map_requests(
  p_workflow trunkline_internal.workflows,
  p_step trunkline_internal.workflow_steps,
  p_source trunkline_internal.workflow_steps,
  p_elements jsonb,
  p_first integer,
  p_number integer
)
returns jsonb
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
  v_fields text[] := array(
    select e.key from jsonb_each(p_step.request -> 'payload') as e where e.value = '{"$item": true}'::jsonb
  );
  v_rest jsonb := coalesce(p_step.request -> 'payload', '{}') - v_fields;
  v_template jsonb := jsonb_strip_nulls(jsonb_build_object(
    'tenant', p_workflow.tenant, 'correlation_id', p_workflow.correlation_id, 'priority', p_workflow.priority
  )) || jsonb_build_object('task', p_step.task) || (p_step.request - 'payload');
begin
  return (
    select jsonb_agg(
      v_template || jsonb_build_object(
        'payload',
        v_rest || coalesce((select jsonb_object_agg(f.field, i.value) from unnest(v_fields) as f (field)), '{}')
      )
      order by i.number
    )
    from (
      select
        n as number,
        case
          when p_source.kind <> 'job' then jsonb_build_object('$result', p_source.name, 'item', n)
          when jsonb_typeof(p_elements -> (n - p_first)) = 'object' and exists (
            select from jsonb_object_keys(p_elements -> (n - p_first)) as k (key) where k.key like '$%'
          ) then jsonb_build_object('$value', p_elements -> (n - p_first))
          else p_elements -> (n - p_first)
        end as value
      from generate_series(p_step.expanded, p_step.expanded + p_number - 1) as n
    ) as i
  );
end;
$$;
comment on function trunkline_internal.map_requests(trunkline_internal.workflows, trunkline_internal.workflow_steps, trunkline_internal.workflow_steps, jsonb, integer, integer) is 'Returns the requests of the next p_number jobs of a map: the template of its step with an element in place of each {"$item": true}.';

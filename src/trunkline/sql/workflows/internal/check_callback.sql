-- Refuses a callback of a graph that could not be enqueued: its task must exist, and its options must be those of a job.
create or replace function trunkline_internal.check_callback(p_graph jsonb, p_field text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  c_fields constant text[] := array['task', 'payload', 'queue', 'priority', 'max_attempts', 'tags', 'cost'];
  v_policy trunkline_internal.tasks;
  v_request trunkline_internal.request;
  v_unknown text;
begin
  select f.field into v_unknown
  from jsonb_object_keys(p_graph -> p_field) as f (field)
  where f.field <> all(c_fields)
  order by f.field
  limit 1;
  if found then
    perform trunkline_internal.refuse_graph(
      p_problem => 'unknown_field', p_step => null, p_path => p_field || '.' || left(v_unknown, 200),
      p_detail => jsonb_build_object('must_be', c_fields)
    );
  end if;
  v_request := jsonb_populate_record(null::trunkline_internal.request, p_graph -> p_field);
  v_policy := trunkline_internal.task_policy(p_task => v_request.task);
  v_request.payload := coalesce(v_request.payload, '{}');
  perform trunkline_internal.check_request(p_request => v_request);
  if v_request.cost is not null then
    perform trunkline_internal.refuse_fault(p_fault => trunkline_internal.cost_fault(
      p_task => v_request.task, p_cost => v_request.cost, p_limits => v_policy.limits
    ));
  end if;
end;
$$;
comment on function trunkline_internal.check_callback(jsonb, text) is 'Refuses a callback of a graph that could not be enqueued: its task must exist, and its options must be those of a job.';

-- Refuses the fields of a graph's document other than its steps, if one of them has the wrong type or range.
create or replace function trunkline_internal.check_workflow(p_graph jsonb)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  c_fields constant text[] := array[
    'name', 'tenant', 'unique_key', 'idempotency_key', 'correlation_id', 'tags', 'priority', 'deadline', 'params', 'kind',
    'phases', 'on_completed', 'on_failure', 'on_cancel', 'on_end', 'steps'
  ];
  v_field text;
  v_request trunkline_internal.request;
  v_type text;
begin
  if p_graph is null or jsonb_typeof(p_graph) <> 'object' then
    perform trunkline_internal.refuse_graph(p_problem => 'not_an_object', p_step => null, p_path => '');
  end if;
  select f.field into v_field from jsonb_object_keys(p_graph) as f (field) where f.field <> all(c_fields) order by f.field limit 1;
  if found then
    perform trunkline_internal.refuse_graph(
      p_problem => 'unknown_field', p_step => null, p_path => left(v_field, 200), p_detail => jsonb_build_object('must_be', c_fields)
    );
  end if;
  for v_field, v_type in
    select f.field, jsonb_typeof(p_graph -> f.field)
    from unnest(c_fields) as f (field)
    where jsonb_typeof(p_graph -> f.field) <> 'null'
  loop
    if v_type <> (case
      when v_field in ('tags', 'phases', 'steps') then 'array'
      when v_field in ('params', 'on_completed', 'on_failure', 'on_cancel', 'on_end') then 'object'
      when v_field = 'priority' then 'number'
      else 'string'
    end) then
      perform trunkline_internal.refuse_graph(
        p_problem => 'wrong_type', p_step => null, p_path => v_field, p_detail => jsonb_build_object('type', v_type)
      );
    end if;
  end loop;
  if coalesce(length(p_graph ->> 'name'), 0) not between 1 and 200 then
    perform trunkline_internal.refuse_graph(
      p_problem => 'name', p_step => null, p_path => 'name', p_detail => '{"must_be": "1 to 200 characters"}'
    );
  end if;
  if p_graph ->> 'kind' not in ('workflow', 'batch') then
    perform trunkline_internal.refuse_graph(
      p_problem => 'kind', p_step => null, p_path => 'kind', p_detail => '{"must_be": "workflow or batch"}'
    );
  end if;
  -- The fields that a workflow shares with a job have the rules of a job; its params have those of a payload.
  v_request := jsonb_populate_record(null::trunkline_internal.request, p_graph - 'steps');
  v_request.task := 'workflow';
  v_request.payload := coalesce(nullif(p_graph -> 'params', 'null'), '{}');
  perform trunkline_internal.check_request(p_request => v_request);
  select p.place::text into v_field
  from jsonb_array_elements(nullif(p_graph -> 'phases', 'null')) with ordinality as p (phase, place)
  where (
    jsonb_typeof(p.phase) = 'object'
    and jsonb_typeof(p.phase -> 'name') = 'string'
    and length(p.phase ->> 'name') between 1 and 200
    and jsonb_typeof(p.phase -> 'weight') = 'number'
    and (p.phase ->> 'weight')::numeric between 0 and 1000000
    and p.phase - '{name,weight}'::text[] = '{}'::jsonb
  ) is not true
  limit 1;
  if found then
    perform trunkline_internal.refuse_graph(
      p_problem => 'phase', p_step => null, p_path => format('phases[%s]', v_field::integer - 1),
      p_detail => '{"must_be": "an object with name and weight"}'
    );
  end if;
  foreach v_field in array array['on_completed', 'on_failure', 'on_cancel', 'on_end'] loop
    if jsonb_typeof(p_graph -> v_field) = 'object' then
      perform trunkline_internal.check_callback(p_graph => p_graph, p_field => v_field);
    end if;
  end loop;
end;
$$;
comment on function trunkline_internal.check_workflow(jsonb) is 'Refuses the fields of a graph''s document other than its steps, if one of them has the wrong type or range.';

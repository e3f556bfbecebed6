-- Refuses the first step of a graph that has a wrong field; what refers to other steps is checked by read_steps.
create or replace function trunkline_internal.check_steps(p_steps jsonb)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  c_fields constant text[] := array[
    'name', 'task', 'after', 'map', 'items', 'phase', 'payload', 'queue', 'priority', 'delay', 'unique_key', 'max_attempts',
    'tags', 'cost', 'expires_at'
  ];
  c_own constant text[] := array['name', 'task', 'after', 'map', 'items', 'phase'];
  v_fault record;
begin
  select s.place - 1 as place, s.step, p.problem, p.path, p.must_be
  into v_fault
  from jsonb_array_elements(p_steps) with ordinality as s (step, place)
  cross join lateral (
    select f.problem, f.path, f.must_be
    from (
      values
        (1, jsonb_typeof(s.step) is distinct from 'object', 'not_an_object', null, 'an object'),
        (2, jsonb_typeof(s.step -> 'name') is distinct from 'string' or length(s.step ->> 'name') not between 1 and 200,
          'name', 'name', 'a string of 1 to 200 characters'),
        (3, jsonb_typeof(s.step -> 'task') is distinct from 'string', 'task', 'task', 'the name of a task'),
        (4, case when jsonb_typeof(s.step) = 'object' then s.step - c_fields <> '{}'::jsonb end, 'unknown_field', null, null),
        (5, jsonb_typeof(s.step -> 'after') <> 'array'
          or jsonb_path_exists(s.step, '$.after[*] ? (@.type() != "string")'), 'after', 'after', 'an array of names of steps'),
        (6, jsonb_typeof(s.step -> 'map') <> 'string', 'map', 'map', 'the name of a step'),
        (7, jsonb_typeof(s.step -> 'items') <> 'array'
          or jsonb_path_exists(s.step, '$.items[*] ? (@.type() != "object")'), 'items', 'items', 'an array of objects'),
        (8, s.step ? 'items' and s.step ? 'map', 'items', 'items', 'left out when map is given'),
        (9, (s.step ? 'items' or s.step ? 'map') and s.step ? 'unique_key', 'unique_key', 'unique_key',
          'in each item: a step of several jobs has none'),
        (10, jsonb_typeof(s.step -> 'phase') <> 'string' or length(s.step ->> 'phase') not between 1 and 200,
          'phase', 'phase', 'a string of 1 to 200 characters'),
        (11, jsonb_typeof(s.step -> 'payload') <> 'object', 'payload', 'payload', 'an object')
    ) as f (number, is_wrong, problem, path, must_be)
    where f.is_wrong
    order by f.number
    limit 1
  ) as p
  order by s.place
  limit 1;
  if found then
    if v_fault.problem = 'unknown_field' then
      select f.field into v_fault.path
      from jsonb_object_keys(v_fault.step) as f (field)
      where f.field <> all(c_fields)
      order by f.field
      limit 1;
    end if;
    perform trunkline_internal.refuse_graph(
      p_problem => v_fault.problem, p_step => v_fault.step ->> 'name',
      p_path => left(concat_ws('.', format('steps[%s]', v_fault.place), v_fault.path), 300),
      p_detail => jsonb_build_object('must_be', coalesce(to_jsonb(v_fault.must_be), to_jsonb(c_fields)))
    );
  end if;
  select s.place - 1 as place, s.step ->> 'name' as name, i.place - 1 as item, f.field
  into v_fault
  from jsonb_array_elements(p_steps) with ordinality as s (step, place)
  cross join lateral jsonb_array_elements(s.step -> 'items') with ordinality as i (item, place)
  cross join lateral jsonb_object_keys(i.item) as f (field)
  where f.field = any(c_own) or f.field <> all(c_fields)
    or (f.field = 'payload' and jsonb_typeof(i.item -> 'payload') <> 'object')
  limit 1;
  if found then
    perform trunkline_internal.refuse_graph(
      p_problem => case when v_fault.field = 'payload' then 'payload' else 'unknown_field' end, p_step => v_fault.name,
      p_path => left(format('steps[%s].items[%s].%s', v_fault.place, v_fault.item, v_fault.field), 300)
    );
  end if;
  select (max(s.place) - 1) as place, s.step ->> 'name' as name
  into v_fault
  from jsonb_array_elements(p_steps) with ordinality as s (step, place)
  group by s.step ->> 'name'
  having count(*) > 1
  order by max(s.place)
  limit 1;
  if found then
    perform trunkline_internal.refuse_graph(
      p_problem => 'duplicate_name', p_step => v_fault.name, p_path => format('steps[%s].name', v_fault.place)
    );
  end if;
end;
$$;
comment on function trunkline_internal.check_steps(jsonb) is 'Refuses the first step of a graph that has a wrong field; what refers to other steps is checked by read_steps.';

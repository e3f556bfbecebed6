-- Returns the requests of all jobs of a graph, but those of maps, with the place of the step, the index within it, and whether it waits.
-- A job takes the options of its step, a set's job those of its item over them. Tenant, correlation id and priority come from
-- the workflow; only the priority can be given again.
create or replace function trunkline_internal.graph_requests(
  p_graph jsonb,
  p_steps trunkline_internal.graph_step[],
  out jobs jsonb,
  out places integer[],
  out items integer[],
  out blocked boolean[]
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
  c_own constant text[] := array['name', 'task', 'after', 'map', 'items', 'phase'];
  v_common jsonb := jsonb_strip_nulls(jsonb_build_object(
    'tenant', p_graph -> 'tenant', 'correlation_id', p_graph -> 'correlation_id', 'priority', p_graph -> 'priority'
  ));
begin
  -- The options of a step without its items are computed once: for each item they would copy all items.
  with steps as materialized (
    select
      s.place, s.kind, cardinality(s.after) > 0 as is_blocked, d.step -> 'items' as items,
      v_common || jsonb_build_object('task', s.task) || (d.step - c_own) as request
    from unnest(p_steps) as s
    join jsonb_array_elements(p_graph -> 'steps') with ordinality as d (step, number) on d.number = s.place + 1
    where s.kind <> 'map'
  ),
  requests as (
    select s.place, -1 as item, s.is_blocked, s.request from steps as s where s.kind = 'job'
    union all
    select s.place, i.number::integer - 1, s.is_blocked, s.request || i.item
    from steps as s
    cross join lateral jsonb_array_elements(s.items) with ordinality as i (item, number)
    where s.kind = 'set'
    order by 1, 2
  )
  select coalesce(jsonb_agg(r.request), '[]'), array_agg(r.place), array_agg(r.item), array_agg(r.is_blocked)
  into jobs, places, items, blocked
  from requests as r;
end;
$$;
comment on function trunkline_internal.graph_requests(jsonb, trunkline_internal.graph_step[]) is 'Returns the requests of all jobs of a graph, but those of maps, with the place of the step, the index within it, and whether it waits.';

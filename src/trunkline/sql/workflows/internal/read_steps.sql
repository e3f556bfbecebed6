-- Reads the steps of a graph whose fields were checked: resolves names to places; refuses unknown names, wrong references and cycles.
-- A reference in a payload ($result, $results) and the source of a map count as dependencies. Everything is computed by one
-- statement over the document; only a graph whose steps are not in an order of its dependencies is searched for cycles.
create or replace function trunkline_internal.read_steps(p_steps jsonb)
returns trunkline_internal.graph_step[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_nestloop = off
set jit = off
as $$
declare
  c_most_edges constant integer := 200000;
  v_cycle text[];
  v_edges bigint;
  v_fault jsonb;
  v_is_ordered boolean;
  v_steps trunkline_internal.graph_step[];
begin
  with steps as materialized (
    select
      (s.place - 1)::integer as place, s.step, s.step ->> 'name' as name,
      case when s.step ? 'map' then 'map' when s.step ? 'items' then 'set' else 'job' end as kind,
      -- Null for a map: how many jobs it has is known when its source has completed.
      case when s.step ? 'items' then jsonb_array_length(s.step -> 'items') when not s.step ? 'map' then 1 end as items
    from jsonb_array_elements(p_steps) with ordinality as s (step, place)
  ),
  payloads as (
    select s.place, s.kind, s.step -> 'payload' as payload, 'payload' as path from steps as s where s.step ? 'payload'
    union all
    select s.place, s.kind, i.item -> 'payload', format('items[%s].payload', i.place - 1)
    from steps as s
    cross join lateral jsonb_array_elements(s.step -> 'items') with ordinality as i (item, place)
    where i.item ? 'payload'
  ),
  markers as (
    select p.place, p.kind, p.path || '.' || e.key as path, e.value
    from payloads as p
    cross join lateral jsonb_each(p.payload) as e
    where jsonb_typeof(e.value) = 'object'
      and (e.value ? '$result' or e.value ? '$results' or e.value ? '$item')
      and e.value - '{$result,$results,$item,item}'::text[] = '{}'::jsonb
  ),
  edges as materialized (
    select s.place, a.name, format('after[%s]', a.place - 1) as path, 'after' as via, null::integer as item
    from steps as s
    cross join lateral jsonb_array_elements_text(s.step -> 'after') with ordinality as a (name, place)
    union all
    select s.place, s.step ->> 'map', 'map', 'map', null from steps as s where s.kind = 'map'
    union all
    select
      m.place, coalesce(m.value ->> '$result', m.value ->> '$results'), m.path,
      case
        when m.value ? '$item' then
          case when m.value = '{"$item": true}'::jsonb and m.kind = 'map' then 'item' else 'wrong' end
        when jsonb_typeof(coalesce(m.value -> '$result', m.value -> '$results')) <> 'string'
          or (m.value ? '$result' and m.value ? '$results')
          or (m.value ? 'item' and (m.value ? '$results' or m.value ->> 'item' !~ '^[0-9]{1,9}$'))
          then 'wrong'
        when m.value ? '$results' then 'results'
        when m.value ? 'item' then 'one'
        else 'result'
      end,
      case when m.value ->> 'item' ~ '^[0-9]{1,9}$' then (m.value ->> 'item')::integer end
    from markers as m
  ),
  resolved as materialized (
    select e.place, t.place as source, t.kind as source_kind, e.name, e.path, e.via,
      e.via = 'one' and e.item >= t.items as is_beyond
    from edges as e
    left join steps as t on t.name = e.name
    where e.via <> 'item'
  ),
  faults as (
    select
      r.place, r.path, r.name,
      case
        when r.via = 'wrong' then 'reference'
        when r.source is null then 'unknown_step'
        when r.via = 'result' and r.source_kind <> 'job' then 'result_of_several'
        when r.is_beyond and r.source <> r.place then 'no_such_item'
        else 'own_result'
      end as problem
    from resolved as r
    where r.via = 'wrong' or r.source is null or r.source = r.place or (r.via = 'result' and r.source_kind <> 'job')
      or r.is_beyond
    order by r.place, r.path
    limit 1
  ),
  pairs as materialized (
    select distinct r.place, r.source from resolved as r where not exists (select from faults)
  ),
  befores as (select p.place, array_agg(p.source order by p.source) as after from pairs as p group by p.place),
  afters as (select p.source, array_agg(p.place order by p.place) as dependants from pairs as p group by p.source)
  select
    array_agg(row(
      s.place, s.name, s.step ->> 'task', s.kind, m.place, s.step ->> 'phase',
      s.items,
      coalesce(b.after, '{}'), coalesce(a.dependants, '{}'),
      case when s.kind = 'map' then s.step - '{name,task,after,map,phase}'::text[] end
    )::trunkline_internal.graph_step order by s.place),
    (select count(*) from pairs),
    (select coalesce(bool_and(p.source < p.place), true) from pairs as p),
    (select to_jsonb(f) || jsonb_build_object('step', (select n.name from steps as n where n.place = f.place)) from faults as f)
  into v_steps, v_edges, v_is_ordered, v_fault
  from steps as s
  left join steps as m on m.name = s.step ->> 'map'
  left join befores as b on b.place = s.place
  left join afters as a on a.source = s.place;
  if v_fault is not null then
    perform trunkline_internal.refuse_graph(
      p_problem => case when v_fault ->> 'problem' = 'own_result' then 'cycle' else v_fault ->> 'problem' end,
      p_step => v_fault ->> 'step',
      p_path => left(format('steps[%s].%s', v_fault ->> 'place', v_fault ->> 'path'), 300),
      p_detail => jsonb_strip_nulls(jsonb_build_object('refers_to', left(v_fault ->> 'name', 200)))
    );
  end if;
  if v_edges > c_most_edges then
    perform trunkline_internal.refuse(
      p_name => 'workflow_too_large',
      p_detail => jsonb_build_object('dependencies', v_edges, 'max_dependencies', c_most_edges)
    );
  end if;
  if not v_is_ordered then
    v_cycle := trunkline_internal.find_cycle(p_steps => v_steps);
    if v_cycle is not null then
      perform trunkline_internal.refuse_graph(
        p_problem => 'cycle', p_step => v_cycle[1], p_path => 'steps', p_detail => jsonb_build_object('cycle', v_cycle)
      );
    end if;
  end if;
  return v_steps;
end;
$$;
comment on function trunkline_internal.read_steps(jsonb) is 'Reads the steps of a graph whose fields were checked: resolves names to places; refuses unknown names, wrong references and cycles.';

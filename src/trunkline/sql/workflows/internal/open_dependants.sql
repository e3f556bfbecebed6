-- Opens the steps whose last open dependency was one of these completed steps; returns those that may end at once: empty ones, and those with cancelled items.
-- blocked -> ready | scheduled for their jobs. A map has no jobs yet: the duty expand_workflows inserts them. The caller holds the
-- workflow's lock.
create or replace function trunkline_internal.open_dependants(p_workflow uuid, p_places integer[], p_now timestamptz)
returns integer[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
as $$
declare
  v_ended integer[];
  v_has_map boolean;
  v_opened integer[];
begin
  with ended as (
    select d.place, count(*)::integer as number
    from trunkline_internal.workflow_steps as s
    cross join lateral unnest(s.dependants) as d (place)
    where s.workflow_id = p_workflow and s.place = any(p_places)
    group by d.place
  ),
  changed as (
    update trunkline_internal.workflow_steps as s
    set
      open_dependencies = s.open_dependencies - e.number,
      state = case when s.open_dependencies = e.number then 'open' else s.state end
    from ended as e
    where s.workflow_id = p_workflow and s.place = e.place and s.state = 'blocked'
    returning s.place, s.state, s.kind, s.items
  )
  select
    array_agg(c.place) filter (where c.items > 0), array_agg(c.place) filter (
      where c.items = 0
        or exists (select from trunkline_internal.workflow_ends as e where e.workflow_id = p_workflow and e.step = c.place)
    ),
    coalesce(bool_or(c.kind = 'map' and c.items is null), false)
  into v_opened, v_ended, v_has_map
  from changed as c
  where c.state = 'open';
  if v_opened is not null then
    perform trunkline_internal.unblock_jobs(p_workflow => p_workflow, p_places => v_opened, p_now => p_now);
  end if;
  if v_has_map then
    perform pg_notify('trunkline_duties', 'expand_workflows');
  end if;
  return v_ended;
end;
$$;
comment on function trunkline_internal.open_dependants(uuid, integer[], timestamptz) is 'Opens the steps whose last open dependency was one of these completed steps; returns those that may end at once: empty ones, and those with cancelled items.';

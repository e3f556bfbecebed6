-- Returns the first twenty steps that the step of a blocked job still waits for, with their states and how many jobs have completed.
create or replace function trunkline_internal.open_dependencies(p_workflow uuid, p_place integer)
returns jsonb
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  return (
    select jsonb_agg(
      jsonb_build_object('step', o.name, 'state', o.state, 'jobs', o.items, 'completed', (
        select count(*)
        from trunkline_internal.workflow_ends as e
        where e.workflow_id = p_workflow and e.step = o.place and e.state = 'completed'
      )) order by o.place
    )
    from (
      select d.place, d.name, d.state, d.items
      from trunkline_internal.workflow_steps as s
      join trunkline_internal.workflow_steps as d on d.workflow_id = s.workflow_id and d.place = any(s.after)
      where s.workflow_id = p_workflow and s.place = p_place and d.state <> 'completed'
      order by d.place
      limit 20
    ) as o
  );
end;
$$;
comment on function trunkline_internal.open_dependencies(uuid, integer) is 'Returns the first twenty steps that the step of a blocked job still waits for, with their states and how many jobs have completed.';

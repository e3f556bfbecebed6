-- Inserts jobs of maps whose source has completed, at most p_limit in a run and 1000 of one map; returns how many. The work of the duty expand_workflows.
-- none -> ready | scheduled. A run takes 200 open maps and the next run continues after them, so that maps which cannot be
-- expanded, for instance because their queue refuses jobs, do not keep others waiting. Workflows that are locked are left to
-- their next turn. While jobs are left it notifies the workers, so that one of them runs it again at once.
create or replace function trunkline_internal.duty_expand_workflows(p_limit integer default 5000)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  c_chunk constant integer := 1000;
  c_in_turn constant integer := 200;
  v_done integer := 0;
  v_last jsonb;
  v_more boolean := false;
  v_now timestamptz := trunkline.clock();
  v_number integer;
  v_place integer;
  v_seen integer := 0;
  v_step record;
  v_workflow uuid;
begin
  select
    coalesce((d.state ->> 'workflow')::uuid, '00000000-0000-0000-0000-000000000000'), coalesce((d.state ->> 'place')::integer, -1)
  into v_workflow, v_place
  from trunkline_internal.duties as d
  where d.duty = 'expand_workflows';
  for v_step in
    select o.workflow_id, o.place
    from (
      (
        select 1 as turn, s.workflow_id, s.place
        from trunkline_internal.workflow_steps as s
        where s.kind = 'map'
          and s.state = 'open'
          and (s.items is null or s.expanded < s.items)
          and (s.workflow_id, s.place) > (v_workflow, v_place)
        order by s.workflow_id, s.place
        limit c_in_turn
      )
      union all
      (
        select 2, s.workflow_id, s.place
        from trunkline_internal.workflow_steps as s
        where s.kind = 'map'
          and s.state = 'open'
          and (s.items is null or s.expanded < s.items)
          and (s.workflow_id, s.place) <= (v_workflow, v_place)
        order by s.workflow_id, s.place
        limit c_in_turn
      )
    ) as o
    order by o.turn, o.workflow_id, o.place
    limit c_in_turn
  loop
    if v_done >= p_limit then
      v_more := true;
      exit;
    end if;
    v_seen := v_seen + 1;
    v_last := jsonb_build_object('workflow', v_step.workflow_id, 'place', v_step.place);
    continue when not trunkline_internal.lock_workflow(p_workflow => v_step.workflow_id, p_wait => false);
    v_number := trunkline_internal.expand_map(
      p_workflow => v_step.workflow_id, p_place => v_step.place, p_most => least(c_chunk, p_limit - v_done), p_now => v_now
    );
    v_more := v_more or v_number >= c_chunk;
    v_done := v_done + v_number;
  end loop;
  update trunkline_internal.duties as d set state = coalesce(v_last, '{}') where d.duty = 'expand_workflows';
  if v_more or (v_done > 0 and v_seen = c_in_turn) then
    perform pg_notify('trunkline_duties', 'expand_workflows');
  end if;
  return v_done;
end;
$$;
comment on function trunkline_internal.duty_expand_workflows(integer) is 'Inserts jobs of maps whose source has completed, at most p_limit in a run and 1000 of one map; returns how many. The work of the duty expand_workflows.';

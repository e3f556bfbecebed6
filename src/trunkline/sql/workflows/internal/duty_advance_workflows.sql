-- Does what calls have left open in workflows, ends those past their deadline, and stops those whose parent has ended; returns how many. The work of the duty advance_workflows.
-- It also examines live workflows in turn, fifty in a run, although nothing should be left there, and the parents of five
-- thousand live workflows of child jobs. Workflows that are locked are left to the next run.
create or replace function trunkline_internal.duty_advance_workflows(p_limit integer default 500)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  c_in_turn constant integer := 50;
  c_children constant integer := 5000;
  v_done integer := 0;
  v_ids uuid[];
  v_lost record;
  v_now timestamptz := trunkline.clock();
  v_state jsonb;
  v_turn uuid[];
  v_workflow record;
begin
  select d.state into v_state from trunkline_internal.duties as d where d.duty = 'advance_workflows';
  with taken as (
    delete from trunkline_internal.workflow_marks as m
    where m.ctid = any(array(select o.ctid from trunkline_internal.workflow_marks as o limit p_limit for update skip locked))
    returning m.workflow_id
  )
  select array_agg(distinct t.workflow_id) into v_ids from taken as t;
  v_turn := array(
    select w.workflow_id
    from trunkline_internal.workflows as w
    where w.ended_at is null and w.workflow_id > coalesce((v_state ->> 'after')::uuid, '00000000-0000-0000-0000-000000000000')
    order by w.workflow_id
    limit c_in_turn
  );
  v_lost := trunkline_internal.lost_children(
    p_after => (v_state ->> 'after_child')::uuid, p_number => c_children, p_limit => p_limit
  );
  update trunkline_internal.duties as d
  set state = jsonb_strip_nulls(jsonb_build_object('after', v_turn[c_in_turn], 'after_child', v_lost.next))
  where d.duty = 'advance_workflows';
  for v_workflow in
    select
      w.workflow_id as id, bool_or(w.is_marked) as is_marked, bool_or(w.is_late) as is_late, bool_or(w.is_lost) as is_lost
    from (
      select m.id as workflow_id, true as is_marked, false as is_late, false as is_lost from unnest(v_ids) as m (id)
      union all
      select t.id, false, false, false from unnest(v_turn) as t (id)
      union all
      select c.id, false, false, true from unnest(v_lost.ids) as c (id)
      union all
      (
        select f.workflow_id, false, true, false
        from trunkline_internal.workflows as f
        where f.ended_at is null and f.deadline <= v_now and f.cancel_requested_at is null
        order by f.deadline
        limit p_limit
      )
    ) as w
    group by w.workflow_id
    order by uuid_hash(w.workflow_id), w.workflow_id
  loop
    if not trunkline_internal.lock_workflow(p_workflow => v_workflow.id, p_wait => false) then
      if v_workflow.is_marked then
        perform trunkline_internal.mark_workflows(p_workflows => array[v_workflow.id], p_now => v_now);
      end if;
      continue;
    end if;
    if v_workflow.is_late then
      perform trunkline_internal.request_stop(p_workflow => v_workflow.id, p_kind => 'deadline', p_reason => 'deadline', p_now => v_now);
    elsif trunkline_internal.has_lost_parent(p_workflow => v_workflow.id) then
      perform trunkline_internal.request_stop(
        p_workflow => v_workflow.id, p_kind => 'parent', p_reason => 'parent ended', p_now => v_now
      );
    else
      perform trunkline_internal.advance_workflow(p_workflow => v_workflow.id, p_now => v_now);
    end if;
    v_done := v_done + (v_workflow.is_marked or v_workflow.is_late or v_workflow.is_lost)::integer;
  end loop;
  if v_lost.has_more then
    perform pg_notify('trunkline_duties', 'advance_workflows');
  end if;
  return v_done;
end;
$$;
comment on function trunkline_internal.duty_advance_workflows(integer) is 'Does what calls have left open in workflows, ends those past their deadline, and stops those whose parent has ended; returns how many. The work of the duty advance_workflows.';

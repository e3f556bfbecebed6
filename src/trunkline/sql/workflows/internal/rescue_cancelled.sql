-- Moves cancelled jobs that workflows may still run from a span of time to now, before their partition is dropped; returns whether all are moved.
-- A retry puts those that were cancelled for a dependency back to blocked, and a rerun takes requests from all of them. Their
-- time of end changes, because it decides their partition. At most p_limit workflows in a call: each is a lock until the
-- commit, which keeps a retry from meeting a row that has moved. A workflow that is locked is left to the next call.
create or replace function trunkline_internal.rescue_cancelled(
  p_lower timestamptz,
  p_upper timestamptz,
  p_now timestamptz,
  p_limit integer default 200
)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
  v_is_done boolean := true;
  v_workflow uuid;
  v_workflows uuid[];
begin
  v_workflows := array(
    select w.workflow_id
    from trunkline_internal.workflows as w
    where w.workflow_id in (
        select e.workflow_id
        from trunkline_internal.workflow_ends as e
        where e.state = 'cancelled' and e.finished_at >= p_lower and e.finished_at < p_upper
      )
      and trunkline_internal.can_continue(p_workflow => w)
    order by w.workflow_id
    limit p_limit + 1
  );
  foreach v_workflow in array v_workflows[:p_limit] loop
    if not trunkline_internal.lock_workflow(p_workflow => v_workflow, p_wait => false) then
      v_is_done := false;
      continue;
    end if;
    with moved as (
      update trunkline_internal.finished as f
      set finished_at = p_now
      from trunkline_internal.workflow_ends as e
      where e.workflow_id = v_workflow
        and e.state = 'cancelled'
        and e.finished_at >= p_lower
        and e.finished_at < p_upper
        and f.job_id = e.job_id
        and f.finished_at = e.finished_at
        and f.finished_at >= p_lower
        and f.finished_at < p_upper
      returning f.workflow_step, f.workflow_item
    )
    update trunkline_internal.workflow_ends as e
    set finished_at = p_now
    from moved as m
    where e.workflow_id = v_workflow and e.step = m.workflow_step and e.item = coalesce(m.workflow_item, 0);
  end loop;
  return v_is_done and cardinality(v_workflows) <= p_limit;
end;
$$;
comment on function trunkline_internal.rescue_cancelled(timestamptz, timestamptz, timestamptz, integer) is 'Moves cancelled jobs that workflows may still run from a span of time to now, before their partition is dropped; returns whether all are moved.';

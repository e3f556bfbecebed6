-- Cancels all steps that wait for one of these, directly or not, with their jobs and reason dependency; the rest of the workflow continues.
-- blocked -> cancelled. The caller holds the workflow's lock. Locked rows are left to the duty.
create or replace function trunkline_internal.cancel_dependants(p_workflow uuid, p_places integer[], p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
as $$
declare
  v_places integer[];
begin
  with recursive closed as (
    select d.place
    from trunkline_internal.workflow_steps as s
    cross join lateral unnest(s.dependants) as d (place)
    where s.workflow_id = p_workflow and s.place = any(p_places)
    union
    select d.place
    from closed as c
    join trunkline_internal.workflow_steps as s on s.workflow_id = p_workflow and s.place = c.place
    cross join lateral unnest(s.dependants) as d (place)
  ),
  changed as (
    update trunkline_internal.workflow_steps as s
    set state = 'cancelled', reason = 'dependency', ended_at = p_now
    from closed as c
    where s.workflow_id = p_workflow and s.place = c.place and s.state = 'blocked'
    returning s.place
  )
  select array_agg(c.place) into v_places from changed as c;
  if v_places is not null then
    perform trunkline_internal.cancel_step_jobs(p_workflow => p_workflow, p_places => v_places, p_reason => 'dependency', p_now => p_now);
  end if;
end;
$$;
comment on function trunkline_internal.cancel_dependants(uuid, integer[], timestamptz) is 'Cancels all steps that wait for one of these, directly or not, with their jobs and reason dependency; the rest of the workflow continues.';

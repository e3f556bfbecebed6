-- Returns those of the given steps of a workflow of which no job is certain to end later than this call.
-- Certain is a live job whose row nobody has locked or deleted: its end comes after this read, and will see what this
-- transaction has done, because it locks the workflow too. xmax is zero for such a row. A row that a rolled-back call locked counts
-- as uncertain, which only costs a lock. The indexes are read backwards: the newest jobs of a step start last.
create or replace function trunkline_internal.quiet_steps(p_workflow uuid, p_places integer[])
returns integer[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return array(
    select s.place
    from unnest(p_places) as s (place)
    where not exists (
      select
      from (
        select r.xmax as locker
        from trunkline_internal.running as r
        where r.workflow_id = p_workflow and r.workflow_step = s.place
        order by r.workflow_id desc, r.workflow_step desc
      ) as r
      where r.locker = 0
    )
    and not exists (
      select
      from (
        select w.xmax as locker
        from trunkline_internal.waiting as w
        where w.workflow_id = p_workflow and w.workflow_step = s.place
        order by w.workflow_id desc, w.workflow_step desc
      ) as w
      where w.locker = 0
    )
  );
end;
$$;
comment on function trunkline_internal.quiet_steps(uuid, integer[]) is 'Returns those of the given steps of a workflow of which no job is certain to end later than this call.';

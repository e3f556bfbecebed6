-- Returns how far a workflow is: percent, phase, message, and the estimated seconds until its end; percent never falls.
-- The highest percentage is stored when it rises, without waiting for the row: no end of a job writes it. A retry starts a
-- new count. The estimate is the median time of the last twenty completed workflows of the same name and tenant; null if
-- there is none.
create or replace function trunkline.workflow_progress(p_workflow uuid)
returns jsonb
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_percent integer;
  v_progress jsonb;
  v_took double precision;
  v_workflow trunkline_internal.workflows;
begin
  v_workflow := trunkline_internal.visible_workflow(p_workflow => p_workflow);
  v_progress := trunkline_internal.compute_progress(p_workflow => v_workflow);
  v_percent := greatest((v_progress ->> 'percent')::integer, v_workflow.progress_mark, 0);
  if v_percent > coalesce(v_workflow.progress_mark, 0) and current_setting('transaction_read_only') = 'off' then
    update trunkline_internal.workflows as w
    set progress_mark = v_percent
    from (
      select l.workflow_id
      from trunkline_internal.workflows as l
      where l.workflow_id = p_workflow and l.generation = v_workflow.generation and coalesce(l.progress_mark, 0) < v_percent
      for no key update skip locked
    ) as l
    where w.workflow_id = l.workflow_id;
  end if;
  if v_workflow.ended_at is null then
    select percentile_cont(0.5) within group (order by extract(epoch from o.ended_at - o.created_at))
    into v_took
    from (
      select w.created_at, w.ended_at
      from trunkline_internal.workflows as w
      where w.name = v_workflow.name and w.workflow_id < p_workflow and w.state = 'completed'
        and w.tenant is not distinct from v_workflow.tenant and w.generation = 1 and w.rerun_of is null
      order by w.workflow_id desc
      limit 20
    ) as o;
  end if;
  return v_progress || jsonb_build_object(
    'percent', v_percent, 'remaining', round((v_took * (100 - v_percent) / 100)::numeric, 1)
  );
end;
$$;
comment on function trunkline.workflow_progress(uuid) is 'Returns how far a workflow is: percent, phase, message, and the estimated seconds until its end; percent never falls.';

-- Removes workflows past their retention, which counts from their end, and expired keys; returns how many workflows. The work of the duty sweep_workflows.
-- Their jobs have their own retention. A workflow stays while one of its jobs is dead and not acknowledged, or while a rerun uses its
-- results. Workflows that are locked are left to the next run.
create or replace function trunkline_internal.duty_sweep_workflows(p_limit integer default 1000)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_before timestamptz := trunkline.clock() - trunkline_internal.setting(p_name => 'workflow_retention')::interval;
  v_done integer := 0;
  v_workflow uuid;
begin
  for v_workflow in
    select w.workflow_id
    from (
      select w.workflow_id
      from trunkline_internal.workflows as w
      where w.ended_at <= v_before
        and not exists (
          select from trunkline_internal.dead as d where d.workflow_id = w.workflow_id and d.acknowledged_at is null
        )
        and not exists (select from trunkline_internal.workflows as r where r.rerun_of = w.workflow_id)
      order by w.ended_at
      limit p_limit
    ) as w
    order by uuid_hash(w.workflow_id), w.workflow_id
  loop
    continue when not trunkline_internal.lock_workflow(p_workflow => v_workflow, p_wait => false);
    -- Checked again under the lock: a retry may have opened it.
    if exists (select from trunkline_internal.workflows as w where w.workflow_id = v_workflow and w.ended_at <= v_before) then
      perform trunkline_internal.remove_workflow(p_workflow => v_workflow, p_jobs => false);
      v_done := v_done + 1;
    end if;
  end loop;
  delete from trunkline_internal.workflow_keys as k
  where (k.tenant, k.kind, k.name, k.key) in (
    select o.tenant, o.kind, o.name, o.key
    from trunkline_internal.workflow_keys as o
    where o.expires_at <= trunkline.clock()
    order by o.expires_at
    limit p_limit
    for update skip locked
  );
  return v_done;
end;
$$;
comment on function trunkline_internal.duty_sweep_workflows(integer) is 'Removes workflows past their retention, which counts from their end, and expired keys; returns how many workflows. The work of the duty sweep_workflows.';

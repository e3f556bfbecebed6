-- Returns whether a workflow of child jobs, not detached, waits for a parent that has ended.
create or replace function trunkline_internal.has_lost_parent(p_workflow uuid)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_parent uuid;
begin
  select w.parent_job into v_parent
  from trunkline_internal.workflows as w
  where w.workflow_id = p_workflow and w.parent_job is not null and not w.detached and w.cancel_requested_at is null;
  return v_parent is not null
    and not exists (select from trunkline_internal.waiting as w where w.job_id = v_parent)
    and not exists (select from trunkline_internal.running as r where r.job_id = v_parent)
    -- It may have moved from running to waiting between the two statements.
    and not exists (select from trunkline_internal.waiting as w where w.job_id = v_parent);
end;
$$;
comment on function trunkline_internal.has_lost_parent(uuid) is 'Returns whether a workflow of child jobs, not detached, waits for a parent that has ended.';

-- Returns whether jobs of a workflow may still run or be run again: it is live, a job of it is dead, or a map of it could not be expanded.
-- What such a workflow needs of its finished jobs is kept when their partition is dropped.
create or replace function trunkline_internal.can_continue(p_workflow trunkline_internal.workflows)
returns boolean
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  return p_workflow.state = 'live'
    or exists (select from trunkline_internal.dead as d where d.workflow_id = p_workflow.workflow_id)
    or exists (
      select
      from trunkline_internal.workflow_steps as s
      where s.workflow_id = p_workflow.workflow_id
        and s.kind = 'map'
        and s.state = 'failed'
        and (s.items is null or s.expanded < s.items)
    );
end;
$$;
comment on function trunkline_internal.can_continue(trunkline_internal.workflows) is 'Returns whether jobs of a workflow may still run or be run again: it is live, a job of it is dead, or a map of it could not be expanded.';

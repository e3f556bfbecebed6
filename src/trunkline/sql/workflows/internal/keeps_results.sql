-- Returns whether results and files of a workflow may still be read by its own jobs, by those of a rerun, or by the job that waits for it.
create or replace function trunkline_internal.keeps_results(p_workflow trunkline_internal.workflows)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  return trunkline_internal.can_continue(p_workflow => p_workflow)
    or exists (select from trunkline_internal.workflows as r where r.rerun_of = p_workflow.workflow_id)
    or (p_workflow.parent_job is not null and trunkline_internal.keeps_steps(p_job => p_workflow.parent_job));
end;
$$;
comment on function trunkline_internal.keeps_results(trunkline_internal.workflows) is 'Returns whether results and files of a workflow may still be read by its own jobs, by those of a rerun, or by the job that waits for it.';

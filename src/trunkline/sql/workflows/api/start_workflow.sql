-- Starts a workflow: stores the graph and all its jobs in the caller's transaction, or returns the workflow that already has one of its keys.
-- none -> ready | scheduled | blocked. The document has a name, steps, and options; docs/how-to/workflows.md describes it. A
-- graph with a cycle, an unknown name, too many jobs or a job that enqueue would refuse is refused as a whole.
-- Locks: keys of workflows, then as enqueue_many.
create or replace function trunkline.start_workflow(p_graph jsonb)
returns trunkline.started_workflow
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return trunkline_internal.store_workflow(p_graph => p_graph);
exception
  when data_exception or feature_not_supported then
    perform trunkline_internal.refuse_graph(
      p_problem => 'wrong_type', p_step => null, p_path => '', p_detail => jsonb_build_object('reason', sqlerrm)
    );
    -- Not reached: the refusal ends the call.
    return null;
end;
$$;
comment on function trunkline.start_workflow(jsonb) is 'Starts a workflow: stores the graph and all its jobs in the caller''s transaction, or returns the workflow that already has one of its keys.';

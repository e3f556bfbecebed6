-- Takes replayed jobs back into their workflows, in the order of the workflows' locks; jobs without one are left out.
create or replace function trunkline_internal.reopen_jobs(p_jobs uuid[], p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
as $$
declare
  v_workflow record;
begin
  for v_workflow in
    select w.workflow_id as id, array_agg(w.workflow_step) as places, array_agg(w.workflow_item) as items
    from trunkline_internal.waiting as w
    where w.job_id = any(p_jobs) and w.workflow_id is not null
    group by w.workflow_id
    order by uuid_hash(w.workflow_id), w.workflow_id
  loop
    perform trunkline_internal.reopen_workflow(
      p_workflow => v_workflow.id, p_places => v_workflow.places, p_items => v_workflow.items, p_now => p_now
    );
  end loop;
end;
$$;
comment on function trunkline_internal.reopen_jobs(uuid[], timestamptz) is 'Takes replayed jobs back into their workflows, in the order of the workflows'' locks; jobs without one are left out.';

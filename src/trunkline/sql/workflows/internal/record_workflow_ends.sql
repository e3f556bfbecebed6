-- Appends one row for each job of a workflow that has ended. A job that was replayed and ended again replaces its row.
create or replace function trunkline_internal.record_workflow_ends(p_ended trunkline_internal.workflow_end[], p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into trunkline_internal.workflow_ends (
    workflow_id, step, item, job_id, finished_at, state, cost_requests, cost_tokens, cost_units, limit_ids, bucket_ids
  )
  select
    e.workflow_id, e.step, coalesce(e.item, 0), e.job_id, p_now, e.state, e.cost_requests, e.cost_tokens, e.cost_units, e.limit_ids,
    e.bucket_ids
  from unnest(p_ended) as e
  order by e.workflow_id, e.step, e.item
  on conflict (workflow_id, step, item) do update
  set
    job_id = excluded.job_id, finished_at = excluded.finished_at, state = excluded.state, result = null,
    cost_requests = excluded.cost_requests, cost_tokens = excluded.cost_tokens, cost_units = excluded.cost_units,
    limit_ids = excluded.limit_ids, bucket_ids = excluded.bucket_ids;
end;
$$;
comment on function trunkline_internal.record_workflow_ends(trunkline_internal.workflow_end[], timestamptz) is 'Appends one row for each job of a workflow that has ended. A job that was replayed and ended again replaces its row.';

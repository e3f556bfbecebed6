-- Returns the present state and progress of workflows that the caller can see, at most 100; one that is unknown has no row.
-- Stores nothing: percent is the highest that workflow_progress has stored, or the present one if that is more.
create or replace function trunkline.live_workflows(p_workflows uuid[])
returns setof trunkline.live_workflow
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_scope text := trunkline.tenant_scope();
begin
  if array_ndims(p_workflows) > 1 or cardinality(p_workflows) > 100 then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object('argument', 'p_workflows', 'must_be', 'one list of at most 100 workflows')
    );
  end if;
  return query
  select
    w.workflow_id, w.name, p.progress ->> 'state', w.generation,
    greatest((p.progress ->> 'percent')::integer, w.progress_mark, 0), p.progress ->> 'phase', p.progress ->> 'message',
    w.reason, w.tenant, w.jobs, w.ended_at
  from trunkline_internal.workflows as w
  cross join lateral (select trunkline_internal.compute_progress(p_workflow => w) as progress) as p
  where w.workflow_id = any(p_workflows) and (v_scope is null or w.tenant = v_scope);
end;
$$;
comment on function trunkline.live_workflows(uuid[]) is 'Returns the present state and progress of workflows that the caller can see, at most 100; one that is unknown has no row.';

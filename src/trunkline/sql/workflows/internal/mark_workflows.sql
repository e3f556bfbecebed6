-- Leaves workflows to the duty advance_workflows. Two marks of one workflow never wait for each other.
create or replace function trunkline_internal.mark_workflows(p_workflows uuid[], p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into trunkline_internal.workflow_marks (workflow_id, marked_at)
  select distinct w.id, p_now from unnest(p_workflows) as w (id);
end;
$$;
comment on function trunkline_internal.mark_workflows(uuid[], timestamptz) is 'Leaves workflows to the duty advance_workflows. Two marks of one workflow never wait for each other.';

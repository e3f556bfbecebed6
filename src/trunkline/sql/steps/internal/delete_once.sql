-- Deletes the recorded results of steps that run once for all jobs of a workflow, or of a job without one; returns how many.
create or replace function trunkline_internal.delete_once(p_scope uuid, p_name text, p_key text)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_done integer;
begin
  delete from trunkline_internal.once_steps as o
  where o.scope = p_scope and o.name = p_name and coalesce(p_key, '#1') = '#1' and o.recorded_at is not null;
  get diagnostics v_done = row_count;
  return v_done;
end;
$$;
comment on function trunkline_internal.delete_once(uuid, text, text) is 'Deletes the recorded results of steps that run once for all jobs of a workflow, or of a job without one; returns how many.';

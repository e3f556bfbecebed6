-- Returns the tasks and numbers of child jobs if the hash of their requests differs from the one that is asked for now, else an empty object.
-- Without a stored hash nothing is compared. Steps are arrays of name and number, in the order of the first requests.
create or replace function trunkline_internal.changed_jobs(p_workflow uuid, p_stored bigint, p_hash bigint)
returns jsonb
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  if (p_stored = p_hash) is not false then
    return '{}'::jsonb;
  end if;
  return jsonb_build_object('changed', true, 'steps', (
    select coalesce(jsonb_agg(jsonb_build_array(s.name, s.items) order by s.place), '[]')
    from trunkline_internal.workflow_steps as s
    where s.workflow_id = p_workflow
  ));
end;
$$;
comment on function trunkline_internal.changed_jobs(uuid, bigint, bigint) is 'Returns the tasks and numbers of child jobs if the hash of their requests differs from the one that is asked for now, else an empty object.';

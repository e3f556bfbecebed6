-- Locks a workflow until the transaction ends; without p_wait only if it is free. Returns whether it is locked.
-- Shared: another job of the step is live, so this end cannot be the last one. Exclusive: this end may be the last of its step,
-- or changes steps. Two workflows with the same number exclude each other. Transactions lock several in the order of these numbers.
create or replace function trunkline_internal.lock_workflow(p_workflow uuid, p_shared boolean default false, p_wait boolean default true)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if not p_wait then
    return pg_try_advisory_xact_lock(1953657446, uuid_hash(p_workflow));
  elsif p_shared then
    perform pg_advisory_xact_lock_shared(1953657446, uuid_hash(p_workflow));
  else
    perform pg_advisory_xact_lock(1953657446, uuid_hash(p_workflow));
  end if;
  return true;
end;
$$;
comment on function trunkline_internal.lock_workflow(uuid, boolean, boolean) is 'Locks a workflow until the transaction ends; without p_wait only if it is free. Returns whether it is locked.';

-- Returns the number of the advisory lock of what a job waits for: an event of a job, an event of a key, or a step that runs once.
-- Sending an event takes the lock exclusively. Suspending only tries to share it: see suspend.
create or replace function trunkline_internal.wait_lock(p_job uuid, p_tenant text, p_address text, p_scope uuid, p_name text)
returns integer
language sql
immutable
as $$
  select pg_catalog.hashtextextended(
    case
      when p_scope is not null then 'once ' || p_scope::text
      when p_address is null then 'job ' || p_job::text
      else 'key ' || coalesce(p_tenant, '') || ' ' || p_address
    end || ' ' || p_name,
    0
  )::bit(32)::integer
$$;
comment on function trunkline_internal.wait_lock(uuid, text, text, uuid, text) is 'Returns the number of the advisory lock of what a job waits for: an event of a job, an event of a key, or a step that runs once.';

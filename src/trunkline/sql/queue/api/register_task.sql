-- Registers a task or changes the given parts of its policy. Omitted arguments keep their value, or the default for a new task.
create or replace function trunkline.register_task(
  p_task text,
  p_queue text default null,
  p_lease interval default null,
  p_hard_limit interval default null,
  p_max_attempts integer default null,
  p_backoff jsonb default null,
  p_audit boolean default null,
  p_priority integer default null,
  p_unique_until text default null,
  p_crash_limit integer default null,
  p_reclaim_on_worker_death boolean default null,
  p_lost_backoff boolean default null,
  p_dead_when_deferred boolean default null,
  p_profile text default null,
  p_limits text[] default null,
  p_cost jsonb default null
)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform trunkline_internal.store_task(
    p_task => p_task, p_queue => p_queue, p_lease => p_lease, p_hard_limit => p_hard_limit,
    p_max_attempts => p_max_attempts, p_backoff => p_backoff, p_audit => p_audit, p_priority => p_priority,
    p_unique_until => p_unique_until, p_crash_limit => p_crash_limit,
    p_reclaim_on_worker_death => p_reclaim_on_worker_death, p_lost_backoff => p_lost_backoff,
    p_dead_when_deferred => p_dead_when_deferred, p_profile => p_profile, p_limits => p_limits, p_cost => p_cost,
    p_now => trunkline.clock()
  );
  return p_task;
end;
$$;
comment on function trunkline.register_task(text, text, interval, interval, integer, jsonb, boolean, integer, text, integer, boolean, boolean, boolean, text, text[], jsonb) is 'Registers a task or changes the given parts of its policy. Omitted arguments keep their value, or the default for a new task.';

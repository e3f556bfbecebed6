-- Returns how many worker processes are wanted for each queue and set of tasks. The view wanted_workers shows the same.
-- Computed at each call from bounded counts, so the number rises even if no duty runs, as without any worker. A set of
-- tasks that is new starts with the target of sets that share a task with it. Returns nothing to a session of one tenant.
-- Read-only.
create or replace function trunkline.worker_targets()
returns setof trunkline.worker_target
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
  v_now timestamptz := trunkline.clock();
begin
  if trunkline.tenant_scope() is not null then
    return;
  end if;
  return query
  select d.queue, nullif(d.tasks, '{}'), n.wanted, d.workers, d.startable, d.running, n.low_since, 10000
  from trunkline_internal.worker_demand(p_now => v_now) as d
  left join lateral (
    select t.wanted, t.low_since
    from trunkline_internal.worker_targets as t
    where t.queue = d.queue and (t.tasks = '{}' or d.tasks = '{}' or t.tasks && d.tasks)
    order by t.tasks = d.tasks desc, t.wanted desc
    limit 1
  ) as t on true
  cross join lateral trunkline_internal.next_target(
    p_workers => d.workers, p_startable => d.startable, p_running => d.running, p_wanted => t.wanted,
    p_low_since => t.low_since, p_now => v_now
  ) as n
  order by d.queue, d.tasks;
end;
$$;
comment on function trunkline.worker_targets() is 'Returns how many worker processes are wanted for each queue and set of tasks. The view wanted_workers shows the same.';

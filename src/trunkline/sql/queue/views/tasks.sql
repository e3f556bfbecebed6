-- Tasks with their current policy, their limits and the cron expressions of their schedules.
-- A session that acts for one tenant sees the tasks of its own jobs and schedules. It can enqueue jobs of any other task by
-- name, but it cannot list the tasks that others run.
create or replace view trunkline.tasks with (security_barrier = true) as
select
  t.task, t.queue, t.profile,
  coalesce(t.lease, s.lease) as lease,
  coalesce(t.hard_limit, 4 * coalesce(t.lease, s.lease)) as hard_limit,
  t.max_attempts, t.priority, t.backoff_base, t.backoff_factor, t.backoff_cap, t.backoff_jitter,
  t.lost_backoff, t.reclaim_on_worker_death, t.crash_limit, t.unique_until, t.dead_when_deferred, t.audit,
  t.registered_at, t.updated_at, t.limits, t.cost, t.alias_of,
  coalesce((
    select jsonb_object_agg(c.schedule, c.cron)
    from trunkline_internal.schedules as c
    where c.task = t.task and ((select trunkline.tenant_scope()) is null or c.tenant = (select trunkline.tenant_scope()))
  ), '{}') as schedules
from trunkline_internal.tasks as t
cross join (
  select coalesce(s.value, s.default_value)::interval as lease from trunkline_internal.settings as s where s.name = 'lease'
) as s
where (select trunkline.tenant_scope()) is null
  or t.task in (
    select j.task from trunkline_internal.all_jobs as j where j.tenant = (select trunkline.tenant_scope())
    union all
    select c.task from trunkline_internal.schedules as c where c.tenant = (select trunkline.tenant_scope())
  );
comment on view trunkline.tasks is 'Tasks with their current policy, their limits and the cron expressions of their schedules.';

-- Returns for each queue and set of tasks how many workers serve it, how many jobs could start and how many run.
-- The sets are those of live workers and of stored targets. A task counts for one of them: first those with workers, then
-- the smallest. A task that none of them serves is a set of one. Empty tasks mean all tasks.
create or replace function trunkline_internal.worker_demand(p_now timestamptz)
returns table (queue text, tasks text[], workers integer, startable bigint, running bigint)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
as $$
begin
  return query
  with work as materialized (
    select j.queue, j.task, sum(j.startable)::bigint as startable, sum(j.running)::bigint as running
    from (
      select s.queue, s.task, s.jobs as startable, 0 as running from trunkline_internal.startable_jobs(p_now => p_now) as s
      union all
      select r.queue, r.task, 0, count(*) from trunkline_internal.running as r group by r.queue, r.task
    ) as j
    group by j.queue, j.task
  ),
  alive as materialized (
    select w.queues, coalesce(array(select distinct t.task from unnest(w.tasks) as t (task) order by t.task), '{}') as tasks
    from trunkline_internal.workers as w
    where w.state = 'active'
      and p_now - w.seen_at <= trunkline_internal.setting(p_name => 'pulse_misses')::integer * w.pulse_interval
  ),
  known as (
    select k.queue from work as k
    union
    select t.queue from trunkline_internal.worker_targets as t
    union
    select q.queue from alive as a cross join unnest(a.queues) as q (queue)
    union
    select 'default' where exists (select from alive as a where a.queues is null)
  ),
  served as materialized (
    select k.queue, a.tasks, count(*)::integer as workers
    from known as k
    join alive as a on a.queues is null or k.queue = any(a.queues)
    group by k.queue, a.tasks
  ),
  sets as materialized (
    select s.queue, s.tasks, s.workers from served as s
    union all
    select t.queue, t.tasks, 0
    from trunkline_internal.worker_targets as t
    where not exists (select from served as s where s.queue = t.queue and s.tasks = t.tasks)
  ),
  placed as (
    select
      w.startable, w.running, w.queue,
      coalesce((
        select s.tasks
        from sets as s
        where s.queue = w.queue and (s.tasks = '{}' or w.task = any(s.tasks))
        order by s.workers = 0, s.tasks = '{}', cardinality(s.tasks), s.tasks
        limit 1
      ), array[w.task]) as tasks
    from work as w
  )
  select d.queue, d.tasks, sum(d.workers)::integer, sum(d.startable)::bigint, sum(d.running)::bigint
  from (
    select s.queue, s.tasks, s.workers, 0 as startable, 0 as running from sets as s
    union all
    select p.queue, p.tasks, 0, p.startable, p.running from placed as p
  ) as d
  group by d.queue, d.tasks;
end;
$$;
comment on function trunkline_internal.worker_demand(timestamptz) is 'Returns for each queue and set of tasks how many workers serve it, how many jobs could start and how many run.';

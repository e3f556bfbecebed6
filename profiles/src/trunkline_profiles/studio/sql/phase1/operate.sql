-- Metrics with their alerts, for operators.
-- requires: reading, work
-- source: 2.5, 2.11

create or replace function studio.is_served(p_task_type text)
returns boolean
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select
    from trunkline.workers as w
    join studio.task_types as t on t.task_type = p_task_type
    where w.alive and (w.queues is null or t.queue = any(w.queues)) and (w.tasks is null or t.task_type = any(w.tasks))
  ) or exists (
    select from studio.polls as p where p.task_type = p_task_type and p.polled_at > (select trunkline.clock() - interval '5 minutes')
  )
$$;
comment on function studio.is_served(text) is 'Returns whether a live worker serves a type of task, or one has asked for it within five minutes.';

create or replace view studio.metrics with (security_barrier = true) as
with sizes as materialized (
  select s.queue, s.ready_tasks, s.oldest_ready_at
  from trunkline.queue_sizes(p_queues => array(select distinct t.queue from studio.task_types as t)) as s
),
-- The newest 5,000 of each kind: without a bound, every read would go through the whole backlog and a month of jobs.
newest as materialized (
  select j.job_id, j.task, j.state, j.failures, j.finished_at
  from (values ('{running}'::text[]), ('{dead}'), ('{completed, cancelled}')) as k (states)
  cross join lateral trunkline.find_jobs(p_states => k.states, p_limit => 5000) as p
  cross join lateral unnest(p.jobs) as j
  where j.task = any(array(select t.task_type from studio.task_types as t))
),
orders as materialized (
  select w.state, w.created_at, w.ended_at
  from trunkline.workflows as w
  where w.workflow_id = any((
    select trunkline.find_workflows(p_names => array(select t.type from studio.job_types as t), p_limit => 1000)
  )::uuid[])
)
select
  'pending' as metric, t.task_type as label, coalesce((s.ready_tasks ->> t.task_type)::numeric, 0) as value,
  -- A type with pending tasks and without a pool.
  coalesce((s.ready_tasks ->> t.task_type)::numeric, 0) > 0
    and s.oldest_ready_at < (select trunkline.clock() - interval '5 minutes')
    and not studio.is_served(p_task_type => t.task_type) as alert
from studio.task_types as t
left join sizes as s on s.queue = t.queue
union all
select 'claimed', t.task_type, count(j.job_id), false
from studio.task_types as t
left join newest as j on j.task = t.task_type and j.state = 'running'
group by t.task_type
union all
select 'failed', t.task_type, count(j.job_id), count(j.job_id) > 0
from studio.task_types as t
left join newest as j on j.task = t.task_type and j.state = 'dead'
group by t.task_type
union all
select 'oldest_pending_seconds', s.queue, coalesce(round(extract(epoch from (select trunkline.clock()) - s.oldest_ready_at), 1), 0), false
from sizes as s
union all
select 'tasks_last_minute', p.task, sum(p.completed), false
from trunkline.throughput as p
where p.task = any(array(select t.task_type from studio.task_types as t)) and p.minute >= (select trunkline.clock() - interval '1 minute')
group by p.task
union all
select 'attempts_mean', j.task, round(avg(j.failures + case when j.state = 'completed' then 1 else 0 end), 2), false
from newest as j
where j.state in ('completed', 'dead')
group by j.task
union all
select 'reclaimed_last_hour', null, count(*), false
from trunkline.reclaim_history as h
where h.task = any(array(select t.task_type from studio.task_types as t)) and h.at > (select trunkline.clock() - interval '1 hour')
union all
select 'jobs', studio.job_status(p_state => o.state), count(*), o.state = 'failed' from orders as o group by o.state
union all
select
  'job_seconds_p' || p.share, null,
  round((percentile_cont(p.share / 100.0) within group (order by extract(epoch from o.ended_at - o.created_at)))::numeric, 1), false
from orders as o
cross join (values (50), (95)) as p (share)
where o.state = 'completed'
group by p.share
union all
-- These three are of the whole store. The engine keeps a sum for each tenant, so this does not read a row for each file; and a
-- file without an artifact does not say which profile it belongs to.
select 'artifact_bytes', null, coalesce(sum(s.used_bytes), 0), false from trunkline.storage as s
union all
select 'files_to_remove', null, count(*), false from (select from trunkline.file_removals limit 10000) as f
union all
select 'orphan_files', null, s.orphans, false from trunkline.store_sweep as s;
comment on view studio.metrics is 'Metrics, each with its alert: tasks by type and status, ages, rates, attempts, reclaims, jobs, durations, and files.';

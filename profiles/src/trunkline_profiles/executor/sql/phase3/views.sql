-- Views for operators: how close running jobs are to their TTL, reclaimed jobs, metrics with alerts.
-- requires: record
-- source: 000400

create or replace view executor.executor_jobs_stale_monitor with (security_barrier = true) as
select
  m.job_id as id, m.task as type, m.worker as locked_by, m.attempt, m.claimed_at as locked_at, m.heartbeat_at,
  m.age, m.lease as ttl, m.ratio, m.heartbeat_age, m.liveness_age, m.health, m.hard_deadline
from trunkline.stale_monitor as m
join trunkline.tasks as t on t.task = m.task
where t.profile = 'executor';
comment on view executor.executor_jobs_stale_monitor is 'Running jobs with the age of their last sign of life: healthy below the TTL, stale from the TTL, critical from twice the TTL.';

create or replace view executor.executor_jobs_stale_validation with (security_barrier = true) as
select v.job_id as id, v.task as type, v.worker as locked_by, v.claimed_at as locked_at, v.heartbeat_at, v.liveness_age, v.lease as ttl
from trunkline.stale_validation as v
join trunkline.tasks as t on t.task = v.task
where t.profile = 'executor';
comment on view executor.executor_jobs_stale_validation is 'Running jobs whose last sign of life is older than twice their TTL; expected to be empty.';

create or replace view executor.executor_jobs_reclaim_history with (security_barrier = true) as
select
  h.at, h.job_id as id, h.task as type, h.attempt, h.worker as old_worker,
  executor.executor_time(p_text => h.error ->> 'claimed_at') as locked_at,
  executor.executor_time(p_text => h.error ->> 'heartbeat_at') as heartbeat_at,
  executor.executor_status(p_state => h.to_state) as action,
  executor.executor_last_error(p_state => h.to_state, p_error => h.error) as last_error,
  h.run_at as due_at
from trunkline.reclaim_history as h
-- An array as in executor_jobs.
where h.task = any(array(
  select t.task from trunkline.tasks as t where t.profile = 'executor'
))
order by h.at desc;
comment on view executor.executor_jobs_reclaim_history is 'Every reclaim, newest first: the job, its old worker, its lock and heartbeat times, and its new state.';

create or replace view executor.executor_metrics with (security_barrier = true) as
select 'running_over_twice_ttl' as metric, null::text as type, count(*)::numeric as value, count(*) > 0 as alert
from executor.executor_jobs_stale_validation as v
union all
select 'reclaims_last_hour', y.type, count(h.id), false
from executor.executor_job_types as y
left join executor.executor_jobs_reclaim_history as h on h.type = y.type and h.at > (select trunkline.clock() - interval '1 hour')
group by y.type
union all
select 'dead_last_hour', y.type, count(d.job_id), false
from executor.executor_job_types as y
left join trunkline.dead_letters as d on d.task = y.type and d.died_at > (select trunkline.clock() - interval '1 hour')
group by y.type
union all
select
  'seconds_since_reclaim', null, round(extract(epoch from trunkline.clock() - d.succeeded_at), 1),
  coalesce(trunkline.clock() - d.succeeded_at > interval '2 minutes', true)
from trunkline.duties as d
where d.duty = 'reclaim'
union all
select 'reclaim_failures_in_a_row', null, count(*), count(*) >= 3
from executor.executor_cycles as c
where c.cycle > coalesce((select max(g.cycle) from executor.executor_cycles as g where g.error is null), 0)
union all
select 'heartbeats_refused', null, coalesce(sum(h.refused), 0), false
from executor.executor_heartbeats as h
union all
select 'types_without_ttl', null, count(*), count(*) > 0
from executor.executor_job_types as y
where not y.configured;
comment on view executor.executor_metrics is 'Metrics, each with its alert: jobs without a sign of life for twice their TTL, reclaims and dead per hour, the last reclaim, failing cycles, refused heartbeats, types without a TTL.';

grant select on
  executor.executor_jobs_stale_monitor, executor.executor_jobs_stale_validation, executor.executor_jobs_reclaim_history,
  executor.executor_metrics
to trunkline_operator;

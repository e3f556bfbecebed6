-- Running jobs (status processing in older versions) locked for more than five minutes, oldest lock first.
-- Reads only running jobs. With executor_jobs, every row would be read to find those with this status.

select
  m.job_id as id, m.task as type, executor.executor_status(p_state => j.state) as status,
  least(j.failures + 1, j.max_attempts) as attempts,
  m.worker as locked_by, m.claimed_at as locked_at, m.heartbeat_at,
  round(extract(epoch from trunkline.clock() - m.claimed_at) / 60, 1) as age_minutes,
  round(extract(epoch from t.ttl) / 60, 1) as ttl_minutes,
  t.configured as has_own_ttl
from trunkline.stale_monitor as m
cross join lateral trunkline.job(p_job => m.job_id) as j
join executor.executor_job_types as t on t.type = m.task
where executor.executor_status(p_state => j.state) in ('running', 'processing')
  and m.claimed_at < (select trunkline.clock() - interval '5 minutes')
order by m.claimed_at

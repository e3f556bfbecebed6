-- Running jobs, an older word for which is processing, locked for more than five minutes, oldest lock first.

select
  j.id, j.type, j.status, j.attempts, j.locked_by, j.locked_at, j.heartbeat_at,
  round(extract(epoch from trunkline.clock() - j.locked_at) / 60, 1) as age_minutes,
  round(extract(epoch from t.ttl) / 60, 1) as ttl_minutes,
  t.configured as has_own_ttl
-- By id from what runs: by its status every job would be read.
from executor.executor_jobs_stale_monitor as m
join executor.executor_jobs as j on j.id = m.id
join executor.executor_job_types as t on t.type = j.type
where j.status in ('running', 'processing')
  and m.locked_at < (select trunkline.clock() - interval '5 minutes')
order by j.locked_at

-- Workers that called update_job_heartbeat within the last minute.

select h.worker_id, h.last_at
from executor.executor_heartbeats as h
where h.last_at > trunkline.clock() - interval '1 minute'
order by h.worker_id

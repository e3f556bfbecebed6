-- A recording that is under way in one of these processes.

select j.job_id, j.attempt, w.worker, w.pid
from trunkline.jobs as j
join trunkline.workers as w on w.worker = j.worker
where j.state = 'running' and j.task = 'audio_generation' and j.message is not null and w.state = 'active' and w.pid = any (%(pids)s)
order by j.claimed_at desc
limit 1

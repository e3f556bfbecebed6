-- A worker process that waits for an anchor now.

select w.pid, w.worker
from executor.executor_jobs as j
join trunkline.workers as w on w.worker = j.locked_by
where j.status = 'running' and j.type like 'submit\_anchor\_%%' and w.state = 'active' and w.pid = any (%(pids)s)
limit 1

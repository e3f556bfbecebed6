-- A worker process that waits for the provider now: as many jobs run as the provider has calls.

select w.pid, w.worker
from trunkline.jobs as j
join trunkline.workers as w on w.worker = j.worker
where j.state = 'running' and j.task like 'ai\_queue\_pass%%' and w.state = 'active' and w.pid = any (%(pids)s)
  and (select count(*) from trunkline.jobs as r where r.state = 'running' and r.task like 'ai\_queue\_pass%%') = %(calls)s
limit 1

-- The tasks of the demonstration in one row.

select
  count(*) as tasks,
  count(*) filter (where t.status = 'complete') as completed,
  (select count(*) from trunkline.reclaim_history as h) as reclaimed,
  (select count(*) from trunkline.file_removals as r where r.due_at <= trunkline.clock()) as removals
from studio.job_tasks as t
where t.job_id = %(job)s

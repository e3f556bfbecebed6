-- Reclaims of the last hour from the events, by type and by the job's new state.

select
  h.task as type, executor.executor_status(p_state => h.to_state) as status, count(*) as reclaims,
  count(distinct h.job_id) as jobs, count(distinct h.worker) as workers
from trunkline.reclaim_history as h
join trunkline.tasks as t on t.task = h.task
where t.profile = 'executor'
  and h.at > (select trunkline.clock() - interval '1 hour')
group by h.task, h.to_state
order by count(*) desc, h.task

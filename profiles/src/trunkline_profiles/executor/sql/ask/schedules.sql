-- What reclaims jobs: the engine's duty and the two wake-ups, with their last runs.

select 'duty reclaim' as schedule, d.every, d.succeeded_at as last_success, d.failures_in_a_row, d.last_error ->> 'message' as last_error
from trunkline.duties as d
where d.duty = 'reclaim'
union all
select
  w.wrapper, interval '30 seconds',
  (select max(c.at) from executor.executor_cycles as c where c.wrapper = w.wrapper and c.error is null),
  (
    select count(*)
    from executor.executor_cycles as c
    where c.wrapper = w.wrapper
      and c.cycle > coalesce((select max(g.cycle) from executor.executor_cycles as g where g.wrapper = w.wrapper and g.error is null), 0)
  ),
  (select c.error from executor.executor_cycles as c where c.wrapper = w.wrapper order by c.cycle desc limit 1)
from unnest(array['process_orchestrator_jobs', 'wake_execution_engine']) as w (wrapper)

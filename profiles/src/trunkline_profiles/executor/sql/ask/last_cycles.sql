-- The last ten wake-ups with their outcome.

select c.at, c.wrapper, c.queue, c.reclaimed, case when c.error is null then 'ok' else 'failed' end as outcome, c.error
from executor.executor_cycles as c
order by c.cycle desc
limit 10

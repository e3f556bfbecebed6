-- Completed and cancelled jobs per task and minute of the last hour, with mean waiting and running times.
create or replace view trunkline.throughput with (security_barrier = true) as
select
  date_trunc('minute', f.finished_at, 'UTC') as minute,
  f.task,
  f.queue,
  count(*) filter (where f.state = 'completed') as completed,
  count(*) filter (where f.state = 'cancelled') as cancelled,
  avg(f.claimed_at - greatest(f.run_at, f.created_at)) as mean_wait,
  avg(f.finished_at - f.claimed_at) as mean_run
from trunkline_internal.finished as f
-- Computed once, so that only the partitions of that hour are read.
where f.finished_at >= (select trunkline.clock() - interval '1 hour')
  and ((select trunkline.tenant_scope() is null) or f.tenant = (select trunkline.tenant_scope()))
group by date_trunc('minute', f.finished_at, 'UTC'), f.task, f.queue;
comment on view trunkline.throughput is 'Completed and cancelled jobs per task and minute of the last hour, with mean waiting and running times.';

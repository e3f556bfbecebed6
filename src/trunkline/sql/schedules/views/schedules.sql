-- Schedules with their next due time, their last run and the last error.
create or replace view trunkline.schedules with (security_barrier = true) as
select
  s.schedule,
  s.cron,
  s.time_zone,
  s.task,
  s.payload,
  s.queue,
  s.priority,
  s.tenant,
  s.missed,
  s.paused,
  s.next_run_at,
  s.last_run_at,
  s.last_job_id,
  s.last_error,
  s.last_error_at,
  s.skipped,
  s.created_at,
  s.updated_at
from trunkline_internal.schedules as s
where (select trunkline.tenant_scope()) is null or s.tenant = (select trunkline.tenant_scope());
comment on view trunkline.schedules is 'Schedules with their next due time, their last run and the last error.';

-- Duties with their last runs and whether they are late; one that never ran is late.
create or replace view trunkline.duties with (security_barrier = true) as
select
  d.duty, d.every, d.description, d.started_at, d.ended_at, d.succeeded_at, d.rows, d.runs, d.failures,
  d.failures_in_a_row, d.last_error,
  -- Two missed turns and at least a minute: a busy machine is no alarm.
  coalesce(d.succeeded_at < trunkline.clock() - greatest(2 * d.every, interval '1 minute'), true) as late
from trunkline_internal.duties as d;
comment on view trunkline.duties is 'Duties with their last runs and whether they are late; one that never ran is late.';

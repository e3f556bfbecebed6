-- Duties with their last runs, whether they are late, whether they are enabled, and the function that each one calls.
create or replace view trunkline.duties with (security_barrier = true) as
select
  d.duty, d.every, d.description, d.started_at, d.ended_at, d.succeeded_at, d.rows, d.runs, d.failures,
  d.failures_in_a_row, d.last_error,
  -- A duty is late after two missed runs and at least a minute, so that a busy machine raises no alarm. One that never ran
  -- is late; a disabled one is not.
  d.enabled and coalesce(d.succeeded_at < trunkline.clock() - greatest(2 * d.every, interval '1 minute'), true) as late,
  d.enabled,
  d.function
from trunkline_internal.duties as d;
comment on view trunkline.duties is 'Duties with their last runs, whether they are late, whether they are enabled, and the function that each one calls.';

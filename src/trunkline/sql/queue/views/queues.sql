-- Queues with the number of their waiting, running and dead jobs, the age of the oldest ready job, and whether they are paused or age.
-- Counting stops at counted_up_to: a number that reaches it means that many or more. See queue_sizes.
create or replace view trunkline.queues with (security_barrier = true) as
select
  s.queue,
  coalesce(q.paused, false) as paused,
  q.reason as paused_reason,
  q.paused_at,
  q.max_depth,
  s.ready,
  s.scheduled,
  s.blocked,
  s.running,
  s.dead,
  s.oldest_ready_at,
  trunkline.clock() - s.oldest_ready_at as oldest_ready_age,
  coalesce(q.ageing, false) as ageing,
  s.counted_up_to
from trunkline.queue_sizes() as s
left join trunkline_internal.queues as q on q.queue = s.queue;
comment on view trunkline.queues is 'Queues with the number of their waiting, running and dead jobs, the age of the oldest ready job, and whether they are paused or age.';

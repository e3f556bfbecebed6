-- Queues with what waits and runs in each, the age of the oldest ready job, whether claims are held up and whether it ages.
create or replace view trunkline.queues with (security_barrier = true) as
with scope as (
  select trunkline.tenant_scope() as tenant
),
waiting as (
  select
    w.queue,
    count(*) filter (where w.state = 'ready') as ready,
    count(*) filter (where w.state = 'scheduled') as scheduled,
    count(*) filter (where w.state = 'blocked') as blocked,
    min(w.run_at) filter (where w.state = 'ready') as oldest_ready_at
  from trunkline_internal.waiting as w, scope as s
  where s.tenant is null or w.tenant = s.tenant
  group by w.queue
),
running as (
  select r.queue, count(*) as running
  from trunkline_internal.running as r, scope as s
  where s.tenant is null or r.tenant = s.tenant
  group by r.queue
),
dead as (
  select d.queue, count(*) as dead
  from trunkline_internal.dead as d, scope as s
  where s.tenant is null or d.tenant = s.tenant
  group by d.queue
),
names as (
  select l.queue from trunkline_internal.lanes as l, scope as s where s.tenant is null
  union
  select q.queue from trunkline_internal.queues as q, scope as s where s.tenant is null
  union
  select w.queue from waiting as w
  union
  select r.queue from running as r
  union
  select d.queue from dead as d
)
select
  n.queue,
  coalesce(q.paused, false) as paused,
  q.reason as paused_reason,
  q.paused_at,
  q.max_depth,
  coalesce(w.ready, 0) as ready,
  coalesce(w.scheduled, 0) as scheduled,
  coalesce(w.blocked, 0) as blocked,
  coalesce(r.running, 0) as running,
  coalesce(d.dead, 0) as dead,
  w.oldest_ready_at,
  trunkline.clock() - w.oldest_ready_at as oldest_ready_age,
  coalesce(q.ageing, false) as ageing
from names as n
left join trunkline_internal.queues as q on q.queue = n.queue
left join waiting as w on w.queue = n.queue
left join running as r on r.queue = n.queue
left join dead as d on d.queue = n.queue;
comment on view trunkline.queues is 'Queues with what waits and runs in each, the age of the oldest ready job, whether claims are held up and whether it ages.';

-- Running jobs with the age of their last heartbeat or claim: healthy below one lease, stale from one, critical from two leases.
create or replace view trunkline.stale_monitor with (security_barrier = true) as
select
  m.job_id, m.task, m.queue, m.tenant, m.worker, m.attempt, m.claimed_at, m.heartbeat_at,
  m.now - m.claimed_at as age,
  m.now - m.heartbeat_at as heartbeat_age,
  m.now - m.alive_at as liveness_age,
  m.lease,
  round((extract(epoch from m.now - m.alive_at) / extract(epoch from m.lease))::numeric, 3) as ratio,
  case
    when m.now - m.alive_at >= 2 * m.lease then 'critical'
    when m.now - m.alive_at >= m.lease then 'stale'
    else 'healthy'
  end as health,
  m.hard_deadline
from (
  select
    r.job_id, r.task, r.queue, r.tenant, r.worker, r.attempt, r.claimed_at, r.heartbeat_at, r.hard_deadline,
    greatest(r.claimed_at, r.heartbeat_at) as alive_at,
    coalesce(t.lease, s.lease) as lease,
    trunkline.clock() as now
  from trunkline_internal.running as r
  left join trunkline_internal.tasks as t on t.task = r.task
  cross join (
    select coalesce(s.value, s.default_value)::interval as lease from trunkline_internal.settings as s where s.name = 'lease'
  ) as s
  where (select trunkline.tenant_scope() is null) or r.tenant = (select trunkline.tenant_scope())
) as m;
comment on view trunkline.stale_monitor is 'Running jobs with the age of their last heartbeat or claim: healthy below one lease, stale from one, critical from two leases.';

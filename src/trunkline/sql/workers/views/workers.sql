-- Worker processes: whether each is alive and how many jobs it runs.
create or replace view trunkline.workers with (security_barrier = true) as
select
  w.worker, w.state,
  w.state in ('active', 'draining') and trunkline.clock() - w.seen_at <= s.misses * w.pulse_interval as alive,
  w.started_at, w.seen_at, w.pulse_interval,
  coalesce(r.running, 0) as running,
  w.host, w.pid, w.version, w.queues, w.tasks, w.detail, w.signatures
from trunkline_internal.workers as w
cross join (
  select coalesce(s.value, s.default_value)::integer as misses
  from trunkline_internal.settings as s where s.name = 'pulse_misses'
) as s
left join (
  select r.worker, count(*) as running from trunkline_internal.running as r group by r.worker
) as r on r.worker = w.worker
where (select trunkline.tenant_scope()) is null;
comment on view trunkline.workers is 'Worker processes: whether each is alive and how many jobs it runs.';

-- Running jobs whose last heartbeat or claim is at least two leases ago; expected to be empty.
create or replace view trunkline.stale_validation with (security_barrier = true) as
select m.job_id, m.task, m.queue, m.tenant, m.worker, m.attempt, m.claimed_at, m.heartbeat_at, m.liveness_age, m.lease
from trunkline.stale_monitor as m
where m.health = 'critical';
comment on view trunkline.stale_validation is 'Running jobs whose last heartbeat or claim is at least two leases ago; expected to be empty.';

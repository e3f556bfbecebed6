-- Events of jobs: every exceptional transition, and every transition of audited tasks.
-- Tests the tenant scope as the view jobs does.
create or replace view trunkline.events with (security_barrier = true) as
select e.at, e.job_id, e.attempt, e.kind, e.to_state, e.task, e.queue, e.tenant, e.worker, e.actor, e.detail
from trunkline_internal.events as e
where (select trunkline.tenant_scope() is null) or e.tenant = (select trunkline.tenant_scope());
comment on view trunkline.events is 'Events of jobs: every exceptional transition, and every transition of audited tasks.';

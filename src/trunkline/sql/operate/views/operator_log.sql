-- What operators changed: who, when, why, before and after. A session that acts for one tenant sees lines about its own jobs, schedules and workers.
-- Tests the tenant scope as the view jobs does.
create or replace view trunkline.operator_log with (security_barrier = true) as
select
  l.log_id, l.at, l.login, l.actor, l.action, l.kind, l.object, l.tenant, l.reason, l.before, l.after
from trunkline_internal.operator_log as l
where (select trunkline.tenant_scope() is null) or l.tenant = (select trunkline.tenant_scope());
comment on view trunkline.operator_log is 'What operators changed: who, when, why, before and after. A session that acts for one tenant sees lines about its own jobs, schedules and workers.';

-- Dead jobs, newest first, kept until they are replayed or discarded, or until long after they were acknowledged.
-- Tests the tenant scope as the view jobs does.
create or replace view trunkline.dead_letters with (security_barrier = true) as
select
  d.job_id, d.task, d.queue, d.tenant, d.reason, d.died_at, d.attempt, d.failures, d.crashes, d.deferrals,
  d.max_attempts, d.worker, d.last_error, d.acknowledged_at, d.acknowledged_by, d.created_at,
  d.correlation_id, d.unique_key, d.tags, d.error_group
from trunkline_internal.dead as d
where (select trunkline.tenant_scope() is null) or d.tenant = (select trunkline.tenant_scope())
order by d.died_at desc;
comment on view trunkline.dead_letters is 'Dead jobs, newest first, kept until they are replayed or discarded, or until long after they were acknowledged.';

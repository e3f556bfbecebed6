-- All jobs of the caller's tenant, or of all tenants for our roles; look one up by id with the function job.
-- Whether there is a scope is asked within the subquery: the planner takes a null test outside for one row in 200, and would
-- read and sort everything for a page.
create or replace view trunkline.jobs with (security_barrier = true) as
select
  j.job_id, j.state, j.task, j.queue, j.priority, j.tenant, j.attempt, j.failures, j.max_attempts,
  j.deferrals, j.created_at, j.run_at, j.claimed_at, j.heartbeat_at, j.lease_expires_at,
  j.cancel_requested_at, j.finished_at, j.worker, j.progress, j.phase, j.message, j.reason,
  j.unique_key, j.correlation_id, j.retry_of, j.tags, j.last_error
from trunkline_internal.all_jobs as j
where (select trunkline.tenant_scope() is null) or j.tenant = (select trunkline.tenant_scope());
comment on view trunkline.jobs is 'All jobs of the caller''s tenant, or of all tenants for our roles; look one up by id with the function job.';

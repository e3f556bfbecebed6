-- All jobs of the caller's tenant, or of all tenants for our roles; to read one job by id, call the function job.
-- payload and result cost nothing unless they are selected. Calling job for each row would plan each call: 100 rows took
-- 0.5 s. The null test of the tenant scope is inside the subquery. Outside it, the planner expects the test to keep one row
-- in 200, so it reads and sorts everything for a page.
create or replace view trunkline.jobs with (security_barrier = true) as
select
  -- <job shape: jobs of j until last_error>
  j.job_id, j.state, j.task, j.queue, j.priority, j.tenant, j.attempt, j.failures, j.max_attempts, j.deferrals, j.created_at,
  j.run_at, j.claimed_at, j.heartbeat_at, j.lease_expires_at, j.cancel_requested_at, j.finished_at, j.worker, j.progress,
  j.phase, j.message, j.reason, j.unique_key, j.correlation_id, j.retry_of, j.tags, j.last_error,
  -- </job>
  coalesce(j.payload, (
    select b.body from trunkline_internal.bodies as b
    where b.job_id = j.job_id and b.kind = 'payload' and b.day = j.payload_day
  )) as payload,
  coalesce(j.result, (
    select b.body from trunkline_internal.bodies as b
    where b.job_id = j.job_id and b.kind = 'result' and b.day = j.result_day
  )) as result
  -- <job shape: jobs of j after result>
  , j.expires_at, j.workflow_id, j.workflow_step, j.workflow_item
  -- </job>
from trunkline_internal.all_jobs as j
where (select trunkline.tenant_scope() is null) or j.tenant = (select trunkline.tenant_scope());
comment on view trunkline.jobs is 'All jobs of the caller''s tenant, or of all tenants for our roles; to read one job by id, call the function job.';

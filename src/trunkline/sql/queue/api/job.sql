-- Gives one job wherever it is, with payload, result and the errors of its attempts; no row when the caller cannot see it.
-- One statement in a STABLE function, so that all tables are seen in one snapshot; finished from the
-- day of the id on, because a scan of a year would visit every daily partition.
create or replace function trunkline.job(p_job uuid)
returns setof trunkline.job_detail
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
rows 1
as $$
declare
  v_scope text := trunkline.tenant_scope();
  v_since timestamptz := trunkline_internal.id_time(p_id => p_job) - interval '1 minute';
begin
  return query
  select
    -- <job shape: job_detail of j until tenant>
    j.job_id, j.state, j.task, j.queue, j.priority, j.tenant,
    -- </job>
    coalesce(j.payload, (
      select b.body from trunkline_internal.bodies as b
      where b.job_id = p_job and b.kind = 'payload' and b.day = j.payload_day
    )),
    coalesce(j.result, (
      select b.body from trunkline_internal.bodies as b
      where b.job_id = p_job and b.kind = 'result' and b.day = j.result_day
    )),
    -- <job shape: job_detail of j after result until last_error>
    j.attempt, j.failures, j.crashes, j.deferrals, j.max_attempts, j.created_at, j.run_at, j.claimed_at, j.heartbeat_at,
    j.lease_expires_at, j.hard_deadline, j.cancel_requested_at, j.finished_at, j.acknowledged_at, j.worker, j.progress,
    j.phase, j.message, j.reason, j.unique_key, j.correlation_id, j.retry_of, j.tags, j.last_error,
    -- </job>
    trunkline_internal.attempt_errors(p_job => p_job)
    -- <job shape: job_detail of j after errors>
    , j.expires_at, j.error_group, j.workflow_id, j.workflow_step, j.workflow_item
    -- </job>
  from trunkline_internal.all_jobs as j
  where j.job_id = p_job
    and j.prune_by >= v_since
    and (v_scope is null or j.tenant = v_scope);
end;
$$;
comment on function trunkline.job(uuid) is 'Gives one job wherever it is, with payload, result and the errors of its attempts; no row when the caller cannot see it.';

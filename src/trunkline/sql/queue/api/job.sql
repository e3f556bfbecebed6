-- Gives one job wherever it is, with payload, result and the errors of its attempts; no row when the caller cannot see it.
-- Waiting, running, dead, then finished from the day of the id on: a look-up through the view over a
-- year of days would visit each of them. STABLE, so that all tables are seen in one snapshot.
create or replace function trunkline.job(p_job uuid)
returns setof trunkline.job_detail
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
rows 1
as $$
  select
    j.job_id, j.state, j.task, j.queue, j.priority, j.tenant,
    coalesce(j.payload, (
      select b.body from trunkline_internal.bodies as b
      where b.job_id = p_job and b.kind = 'payload' and b.day = j.payload_day
    )),
    coalesce(j.result, (
      select b.body from trunkline_internal.bodies as b
      where b.job_id = p_job and b.kind = 'result' and b.day = j.result_day
    )),
    j.attempt, j.failures, j.crashes, j.deferrals, j.max_attempts, j.created_at, j.run_at, j.claimed_at,
    j.heartbeat_at, j.lease_expires_at, j.hard_deadline, j.cancel_requested_at, j.finished_at,
    j.acknowledged_at, j.worker, j.progress, j.phase, j.message, j.reason, j.unique_key,
    j.correlation_id, j.retry_of, j.tags, j.last_error,
    trunkline_internal.attempt_errors(p_job => p_job)
  from trunkline_internal.all_jobs as j
  where j.job_id = p_job
    and coalesce(j.finished_at, 'infinity') >= trunkline_internal.id_time(p_id => p_job) - interval '1 minute'
    and ((select trunkline.tenant_scope()) is null or j.tenant = (select trunkline.tenant_scope()))
$$;
comment on function trunkline.job(uuid) is 'Gives one job wherever it is, with payload, result and the errors of its attempts; no row when the caller cannot see it.';

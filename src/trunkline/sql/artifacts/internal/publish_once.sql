-- Publishes the result of a step that runs once for a workflow when it is recorded: other jobs read it, whatever becomes of this one.
-- Other files of the step are published by the completion of the job.
create or replace function trunkline_internal.publish_once(p_running trunkline_internal.running, p_result jsonb, p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  with taken as (
    delete from trunkline_internal.staged_artifacts as s
    where s.artifact_id = trunkline_internal.result_reference(p_result => p_result)
      and s.job_id = p_running.job_id
      and s.attempt = p_running.attempt
      and s.kind = 'result'
      and s.kept
    returning s.*
  ),
  added as (
    insert into trunkline_internal.storage_usage (bytes, files, tenant)
    select t.bytes, 1, coalesce(t.tenant, '') from taken as t
  )
  insert into trunkline_internal.artifacts (
    artifact_id, job_id, workflow_id, published_at, expires_at, bytes, duration, attempt, tenant, task, name, kind, content_type,
    path, sha256, step
  )
  select
    t.artifact_id, t.job_id, p_running.workflow_id, p_now, p_now + trunkline_internal.artifact_retention(p_kind => 'result'),
    t.bytes, t.duration, t.attempt, t.tenant, p_running.task, t.name, t.kind, t.content_type, t.path, t.sha256, t.step
  from taken as t;
end;
$$;
comment on function trunkline_internal.publish_once(trunkline_internal.running, jsonb, timestamptz) is 'Publishes the result of a step that runs once for a workflow when it is recorded: other jobs read it, whatever becomes of this one.';

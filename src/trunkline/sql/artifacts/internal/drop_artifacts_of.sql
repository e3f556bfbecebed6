-- Deletes the artifacts and staged files of jobs and queues their files for removal; returns how many artifacts.
-- Deleting a workflow calls it. The rows stay as tombstones, as after delete_artifact, and the duty drops them later. The files
-- are removed by the next sweep, not in this transaction.
create or replace function trunkline_internal.drop_artifacts_of(p_jobs uuid[], p_reason text)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_artifacts uuid[] := array(select a.artifact_id from trunkline_internal.artifacts as a where a.job_id = any(p_jobs));
  v_buried integer;
  v_now timestamptz := trunkline.clock();
begin
  v_buried := trunkline_internal.bury_artifacts(
    p_artifacts => v_artifacts, p_by => session_user, p_reason => p_reason, p_now => v_now
  );
  with gone as (
    delete from trunkline_internal.staged_artifacts as s where s.job_id = any(p_jobs) returning s.path
  )
  insert into trunkline_internal.file_removals (path, queued_at, due_at, reason)
  select g.path, v_now, v_now + interval '1 hour', 'unpublished' from gone as g
  on conflict (path) do nothing;
  return v_buried;
end;
$$;
comment on function trunkline_internal.drop_artifacts_of(uuid[], text) is 'Deletes the artifacts and staged files of jobs and queues their files for removal; returns how many artifacts.';

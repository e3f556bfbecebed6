-- Turns what the completed attempts and recorded steps of jobs have staged into artifacts; queues the rest for removal.
-- A file of a step belongs to the step: if the step was not recorded, its file goes.
-- complete calls it with the jobs that it has just moved to finished, and only if anything is staged. Another attempt may
-- still be uploading: its file is removed an hour later.
create or replace function trunkline_internal.publish_artifacts(p_jobs uuid[], p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  with taken as (
    delete from trunkline_internal.staged_artifacts as s where s.job_id = any(p_jobs) returning s.*
  ),
  ended as (
    select
      t.*, f.task, f.workflow_id, (
        t.staged_at is not null
        and (t.kept or (t.attempt = f.attempt and t.step is null))
        -- Published before: the result of a step that runs once.
        and not exists (
          select from trunkline_internal.artifacts as a where a.job_id = t.job_id and a.kind = t.kind and a.name = t.name
        )
      ) as counts
    from taken as t
    join trunkline_internal.finished as f on f.job_id = t.job_id and f.finished_at = p_now
  ),
  -- A handler that stages one name twice means the last.
  ranked as (
    select e.*, row_number() over (partition by e.job_id, e.kind, e.name, e.counts order by e.staged_at desc, e.artifact_id desc) as place
    from ended as e
  ),
  published as (
    insert into trunkline_internal.artifacts (
      artifact_id, job_id, workflow_id, published_at, expires_at, bytes, duration, attempt, tenant, task, name, kind,
      content_type, path, sha256, step
    )
    select
      r.artifact_id, r.job_id, r.workflow_id, p_now, p_now + trunkline_internal.artifact_retention(p_kind => r.kind), r.bytes,
      r.duration, r.attempt, r.tenant, r.task, r.name, r.kind, r.content_type, r.path, r.sha256, r.step
    from ranked as r
    where r.counts and r.place = 1
  ),
  added as (
    insert into trunkline_internal.storage_usage (bytes, files, tenant)
    select sum(r.bytes), count(*), coalesce(r.tenant, '')
    from ranked as r
    where r.counts and r.place = 1
    group by coalesce(r.tenant, '')
  )
  insert into trunkline_internal.file_removals (path, queued_at, due_at, reason)
  select r.path, p_now, p_now + case when r.staged_at is null then interval '1 hour' else interval '0' end, 'unpublished'
  from ranked as r
  where not (r.counts and r.place = 1)
  on conflict (path) do nothing;
end;
$$;
comment on function trunkline_internal.publish_artifacts(uuid[], timestamptz) is 'Turns what the completed attempts and recorded steps of jobs have staged into artifacts; queues the rest for removal.';

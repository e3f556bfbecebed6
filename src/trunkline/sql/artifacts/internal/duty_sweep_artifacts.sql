-- Queues files of ended attempts and of expired artifacts for removal, and drops old tombstones, each at most p_limit; returns how many.
-- An artifact that its workflow still needs gets a later time. So each is looked at once in a while, however many there are.
create or replace function trunkline_internal.duty_sweep_artifacts(p_limit integer default 1000)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_done integer;
  v_due uuid[];
  v_expired integer;
  v_kept uuid[];
  v_now timestamptz := trunkline.clock();
  v_swept integer;
begin
  with ended as (
    select s.artifact_id
    from trunkline_internal.staged_artifacts as s
    where not exists (select from trunkline_internal.running as r where r.job_id = s.job_id and (s.kept or r.attempt = s.attempt))
      and (not s.kept or not (
        exists (select from trunkline_internal.waiting as w where w.job_id = s.job_id)
        or exists (select from trunkline_internal.dead as d where d.job_id = s.job_id)
      ))
    order by s.artifact_id
    limit p_limit
    for update of s skip locked
  ),
  gone as (
    delete from trunkline_internal.staged_artifacts as s using ended as e where s.artifact_id = e.artifact_id
    returning s.path, s.staged_at
  )
  insert into trunkline_internal.file_removals (path, queued_at, due_at, reason)
  -- The attempt may be alive and uploading without a lease; its file is removed an hour later.
  select g.path, v_now, v_now + case when g.staged_at is null then interval '1 hour' else interval '0' end, 'unpublished'
  from gone as g
  on conflict (path) do nothing;
  get diagnostics v_done = row_count;
  v_due := array(
    select a.artifact_id
    from trunkline_internal.artifacts as a
    where a.deleted_at is null and a.expires_at <= v_now
    order by a.expires_at
    limit p_limit
    for update of a skip locked
  );
  with judged as (
    select a.artifact_id, trunkline_internal.artifact_kept_until(p_artifact => a, p_now => v_now) as until
    from trunkline_internal.artifacts as a
    where a.artifact_id = any(v_due)
  ),
  kept as (
    update trunkline_internal.artifacts as a
    set expires_at = j.until
    from judged as j
    where a.artifact_id = j.artifact_id and j.until > v_now
    returning a.artifact_id
  )
  select array_agg(k.artifact_id) into v_kept from kept as k;
  v_expired := trunkline_internal.bury_artifacts(
    p_artifacts => array(select d.id from unnest(v_due) as d (id) where d.id <> all(coalesce(v_kept, '{}'))),
    p_by => 'sweep_artifacts', p_reason => 'expired', p_now => v_now
  );
  delete from trunkline_internal.artifacts as a
  where a.artifact_id = any(array(
    select t.artifact_id
    from trunkline_internal.artifacts as t
    where t.deleted_at <= v_now - trunkline_internal.setting(p_name => 'artifact_tombstones')::interval
    order by t.deleted_at
    limit p_limit
    for update of t skip locked
  ));
  get diagnostics v_swept = row_count;
  perform trunkline_internal.add_up_storage(p_limit => p_limit);
  return v_done + v_expired + v_swept;
end;
$$;
comment on function trunkline_internal.duty_sweep_artifacts(integer) is 'Queues files of ended attempts and of expired artifacts for removal, and drops old tombstones, each at most p_limit; returns how many.';

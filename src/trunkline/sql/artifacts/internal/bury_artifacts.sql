-- Marks artifacts as deleted, gives their bytes back and queues their files for removal; returns how many.
create or replace function trunkline_internal.bury_artifacts(
  p_artifacts uuid[],
  p_by text,
  p_reason text,
  p_now timestamptz
)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_buried integer;
begin
  with buried as (
    update trunkline_internal.artifacts as a
    set deleted_at = p_now, deleted_by = p_by, delete_reason = left(p_reason, 500)
    where a.artifact_id = any(p_artifacts) and a.deleted_at is null
    returning a.path, a.tenant, a.bytes
  ),
  freed as (
    insert into trunkline_internal.storage_usage (bytes, files, tenant)
    select -sum(b.bytes), -count(*), coalesce(b.tenant, '') from buried as b group by coalesce(b.tenant, '')
  ),
  queued as (
    insert into trunkline_internal.file_removals (path, queued_at, due_at, reason)
    select b.path, p_now, p_now, 'deleted' from buried as b
    on conflict (path) do nothing
  )
  select count(*)::integer into v_buried from buried as b;
  return v_buried;
end;
$$;
comment on function trunkline_internal.bury_artifacts(uuid[], text, text, timestamptz) is 'Marks artifacts as deleted, gives their bytes back and queues their files for removal; returns how many.';

-- Returns where a running attempt uploads an artifact that it has begun and not yet staged, for a link to the store.
-- The store signs the link, so the caller is a program with the store's credentials that acts for the worker.
create or replace function trunkline.artifact_upload(p_worker text, p_job uuid, p_attempt integer, p_artifact uuid)
returns table (path text, name text, content_type text, reserved_bytes bigint)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_running trunkline_internal.running%rowtype;
begin
  v_running := trunkline_internal.lock_uploader(p_worker => p_worker, p_job => p_job, p_attempt => p_attempt);
  return query
  select
    s.path, s.name, s.content_type,
    case when trunkline_internal.storage_quota(p_tenant => v_running.tenant) is not null then s.reserved_bytes end
  from trunkline_internal.staged_artifacts as s
  where s.artifact_id = p_artifact and s.job_id = p_job and s.attempt = p_attempt and s.staged_at is null;
  if not found then
    perform trunkline_internal.refuse(p_name => 'unknown_artifact', p_detail => jsonb_build_object('artifact', p_artifact));
  end if;
end;
$$;
comment on function trunkline.artifact_upload(text, uuid, integer, uuid) is 'Returns where a running attempt uploads an artifact that it has begun and not yet staged, for a link to the store.';

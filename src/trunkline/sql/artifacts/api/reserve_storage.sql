-- Reserves more bytes for an upload that turns out to be larger; returns the bytes, or null without a quota.
create or replace function trunkline.reserve_storage(
  p_worker text,
  p_job uuid,
  p_attempt integer,
  p_artifact uuid,
  p_bytes bigint
)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_reserved bigint;
  v_running trunkline_internal.running%rowtype;
begin
  v_running := trunkline_internal.lock_uploader(p_worker => p_worker, p_job => p_job, p_attempt => p_attempt);
  v_reserved := trunkline_internal.reserve_bytes(p_tenant => v_running.tenant, p_artifact => p_artifact, p_bytes => p_bytes);
  update trunkline_internal.staged_artifacts as s
  set reserved_bytes = greatest(s.reserved_bytes, coalesce(v_reserved, 0))
  where s.artifact_id = p_artifact and s.job_id = p_job and s.attempt = p_attempt and s.staged_at is null;
  if not found then
    perform trunkline_internal.refuse(p_name => 'unknown_artifact', p_detail => jsonb_build_object('artifact', p_artifact));
  end if;
  return v_reserved;
end;
$$;
comment on function trunkline.reserve_storage(text, uuid, integer, uuid, bigint) is 'Reserves more bytes for an upload that turns out to be larger; returns the bytes, or null without a quota.';

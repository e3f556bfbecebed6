-- Deletes an artifact: its row stays as a tombstone, its file is queued for removal. Returns false if it was deleted already.
create or replace function trunkline.delete_artifact(p_artifact uuid, p_reason text default null)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_artifact trunkline_internal.artifacts%rowtype;
  v_scope text := trunkline.tenant_scope();
begin
  perform trunkline_internal.require_read_committed();
  select a.* into v_artifact
  from trunkline_internal.artifacts as a
  where a.artifact_id = p_artifact and (v_scope is null or a.tenant = v_scope)
  for update of a;
  if not found then
    perform trunkline_internal.refuse(p_name => 'unknown_artifact', p_detail => jsonb_build_object('artifact', p_artifact));
  end if;
  if v_artifact.deleted_at is not null then
    return false;
  end if;
  perform trunkline_internal.bury_artifacts(
    p_artifacts => array[p_artifact], p_by => session_user, p_reason => coalesce(p_reason, 'deleted'),
    p_now => trunkline.clock()
  );
  perform trunkline_internal.log_action(
    p_action => 'delete_artifact', p_kind => 'artifact', p_object => p_artifact::text,
    p_before => jsonb_build_object('name', v_artifact.name, 'bytes', v_artifact.bytes, 'job', v_artifact.job_id),
    p_after => null, p_reason => p_reason, p_tenant => v_artifact.tenant
  );
  return true;
end;
$$;
comment on function trunkline.delete_artifact(uuid, text) is 'Deletes an artifact: its row stays as a tombstone, its file is queued for removal. Returns false if it was deleted already.';

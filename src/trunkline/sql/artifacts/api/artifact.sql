-- Returns an artifact, deleted or not; refuses one of another tenant as unknown.
create or replace function trunkline.artifact(p_artifact uuid)
returns trunkline.stored_artifact
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_artifact trunkline.stored_artifact;
  v_scope text := trunkline.tenant_scope();
begin
  select a.artifact_id, a.job_id, a.workflow_id, a.tenant, a.task, a.attempt, a.step, a.name, a.kind, a.content_type, a.bytes, a.sha256,
    a.duration, a.path, a.published_at, a.expires_at, a.deleted_at, a.delete_reason, a.missing_at
  into v_artifact
  from trunkline_internal.artifacts as a
  where a.artifact_id = p_artifact and (v_scope is null or a.tenant = v_scope);
  if not found then
    perform trunkline_internal.refuse(p_name => 'unknown_artifact', p_detail => jsonb_build_object('artifact', p_artifact));
  end if;
  return v_artifact;
end;
$$;
comment on function trunkline.artifact(uuid) is 'Returns an artifact, deleted or not; refuses one of another tenant as unknown.';

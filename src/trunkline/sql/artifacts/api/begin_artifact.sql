-- Reserves the name, the path and, under a quota, the bytes of a file before a running attempt uploads it.
-- The row comes before the file, so that every file of the store is known, whatever dies. The path has the attempt and a part
-- of the artifact's id: no upload replaces a file of another one, not even of the same attempt. Without p_bytes,
-- nothing is reserved before reserve_storage asks for it while the file passes. p_step and p_step_key name the durable step that
-- uploads the file; without a key, any call of the step may keep it.
create or replace function trunkline.begin_artifact(
  p_worker text,
  p_job uuid,
  p_attempt integer,
  p_name text,
  p_kind text default null,
  p_content_type text default null,
  p_bytes bigint default null,
  p_step text default null,
  p_step_key text default null
)
returns trunkline.begun_artifact
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_artifact uuid := trunkline_internal.new_id(p_now => trunkline.clock());
  v_kind text := coalesce(p_kind, lower(substring(p_name from '\.([A-Za-z0-9]{1,20})$')), 'file');
  v_path text;
  v_reserved bigint;
  v_rule jsonb;
  v_running trunkline_internal.running%rowtype;
  v_type text := coalesce(p_content_type, 'application/octet-stream');
begin
  v_rule := trunkline_internal.artifact_rule(p_name => p_name, p_kind => v_kind, p_content_type => v_type, p_step => p_step);
  if v_rule is null and (p_step_key = '' or length(p_step_key) > 200) then
    v_rule := jsonb_build_object('argument', 'p_step_key', 'must_be', 'a text of 1 to 200 characters, or null');
  end if;
  if v_rule is null and p_bytes < 0 then
    v_rule := jsonb_build_object('argument', 'p_bytes', 'must_be', 'zero or more, or null if unknown');
  end if;
  if v_rule is not null then
    perform trunkline_internal.refuse(p_name => 'invalid_artifact', p_detail => v_rule);
  end if;
  v_running := trunkline_internal.lock_uploader(p_worker => p_worker, p_job => p_job, p_attempt => p_attempt);
  if v_running.has_files is null then
    update trunkline_internal.running as r set has_files = true where r.job_id = p_job;
  end if;
  v_path := trunkline_internal.artifact_path(
    p_tenant => v_running.tenant, p_job => p_job, p_workflow => v_running.workflow_id, p_attempt => p_attempt,
    p_artifact => v_artifact, p_kind => v_kind, p_name => p_name
  );
  v_reserved := trunkline_internal.reserve_bytes(p_tenant => v_running.tenant, p_artifact => v_artifact, p_bytes => coalesce(p_bytes, 0));
  insert into trunkline_internal.staged_artifacts (
    artifact_id, job_id, begun_at, reserved_bytes, attempt, tenant, name, kind, content_type, path, step,
    step_key
  )
  values (
    v_artifact, p_job, trunkline.clock(), coalesce(v_reserved, 0), p_attempt, v_running.tenant, p_name, v_kind, v_type, v_path,
    p_step, p_step_key
  );
  return row(v_artifact, v_path, v_reserved)::trunkline.begun_artifact;
end;
$$;
comment on function trunkline.begin_artifact(text, uuid, integer, text, text, text, bigint, text, text) is 'Reserves the name, the path and, under a quota, the bytes of a file before a running attempt uploads it.';

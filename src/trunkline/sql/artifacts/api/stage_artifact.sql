-- Records that the file of a begun artifact was uploaded, with its size and hash; complete publishes it. Returns the artifact.
-- A repeated call returns the same artifact.
create or replace function trunkline.stage_artifact(
  p_worker text,
  p_job uuid,
  p_attempt integer,
  p_path text,
  p_bytes bigint,
  p_sha256 text,
  p_duration double precision default null
)
returns uuid
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_rule jsonb;
  v_running trunkline_internal.running%rowtype;
  v_staged trunkline_internal.staged_artifacts%rowtype;
begin
  v_rule := case
    when p_bytes is null or p_bytes < 0 then jsonb_build_object('argument', 'p_bytes', 'must_be', 'zero or more')
    when p_sha256 is null or p_sha256 !~ '^[0-9a-f]{64}$' then
      jsonb_build_object('argument', 'p_sha256', 'must_be', '64 hexadecimal digits in lower case')
    when p_duration < 0 or p_duration = 'infinity' or p_duration = 'nan' then
      jsonb_build_object('argument', 'p_duration', 'must_be', 'seconds, zero or more')
  end;
  if v_rule is not null then
    perform trunkline_internal.refuse(p_name => 'invalid_artifact', p_detail => v_rule);
  end if;
  v_running := trunkline_internal.lock_uploader(p_worker => p_worker, p_job => p_job, p_attempt => p_attempt);
  select s.* into v_staged
  from trunkline_internal.staged_artifacts as s
  where s.path = p_path and s.job_id = p_job and s.attempt = p_attempt
  for update of s;
  if not found or (v_staged.staged_at is not null and (v_staged.bytes, v_staged.sha256) <> (p_bytes, p_sha256)) then
    perform trunkline_internal.refuse(
      p_name => 'invalid_artifact',
      p_detail => jsonb_build_object(
        'argument', 'p_path', 'must_be', 'a path that begin_artifact returned to this attempt and that was not staged yet',
        'path', left(p_path, 300)
      )
    );
  end if;
  if v_staged.staged_at is not null then
    return v_staged.artifact_id;
  end if;
  if p_bytes > v_staged.reserved_bytes then
    perform trunkline_internal.reserve_bytes(
      p_tenant => v_running.tenant, p_artifact => v_staged.artifact_id, p_bytes => p_bytes
    );
  end if;
  update trunkline_internal.staged_artifacts as s
  set staged_at = trunkline.clock(), bytes = p_bytes, sha256 = p_sha256, duration = p_duration, reserved_bytes = 0
  where s.artifact_id = v_staged.artifact_id;
  return v_staged.artifact_id;
end;
$$;
comment on function trunkline.stage_artifact(text, uuid, integer, text, bigint, text, double precision) is 'Records that the file of a begun artifact was uploaded, with its size and hash; complete publishes it. Returns the artifact.';

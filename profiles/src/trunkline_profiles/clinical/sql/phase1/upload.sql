-- Functions for clients: upload a file, write an audit event, and report health.
-- requires: pipeline, audit
-- source: added (client functions)

create or replace function clinical.check_path(p_patient uuid, p_path text)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_path is null
    or not starts_with(p_path, p_patient::text || '/')
    or p_path ~ '(^|/)\.{1,2}(/|$)'
    or length(p_path) > 1000
    or exists (
      select
      from regexp_matches(lower(p_path), '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}', 'g') as m (found)
      where m.found[1]::uuid <> p_patient
        and (
          exists (select from clinical.user_profiles as u where u.id = m.found[1]::uuid)
          or exists (
            select
            from clinical.profile_access as a
            where a.user_id = m.found[1]::uuid and a.user_id is distinct from clinical.user_id()
          )
        )
    )
  then
    perform clinical.refuse(
      p_code => 'invalid_path', p_message => 'a file is stored in the folder of its patient',
      p_detail => jsonb_build_object('patient_id', p_patient, 'storage_path', left(p_path, 200))
    );
  end if;
end;
$$;
comment on function clinical.check_path(uuid, text) is 'Refuses a path outside of the patient''s folder, and one with any other patient''s id.';

create or replace function clinical.submit_upload(
  p_patient_id uuid,
  p_storage_path text,
  p_file_facts jsonb default '{}',
  p_idempotency_key text default null
)
returns table (file_id uuid, job_id uuid)
language plpgsql
volatile
security definer
rows 1
set search_path = pg_catalog, pg_temp
as $$
declare
  v_acted_for text := coalesce(current_setting('trunkline.tenant', true), '');
  v_file uuid;
  v_first text := (select t.job_type from clinical.job_types as t where t.is_first_stage and t.is_active order by t.job_type limit 1);
  v_is_service boolean := clinical.is_service_role();
  v_job uuid;
begin
  -- A caller without access must not learn whether the patient exists.
  if not (v_is_service or clinical.has_profile_access(p_patient => p_patient_id))
    or not exists (select from clinical.user_profiles as u where u.id = p_patient_id)
  then
    perform clinical.refuse(p_code => 'access_denied', p_message => 'permission denied for the profile of the patient');
  end if;
  perform clinical.require_enqueue();
  if clinical.configured(p_key => 'maintenance.mode') = 'true' and clinical.configured(p_key => 'maintenance.stop_uploads') = 'true' then
    perform clinical.refuse(p_code => 'uploads_stopped', p_message => 'uploads are stopped during the maintenance');
  end if;
  perform clinical.check_path(p_patient => p_patient_id, p_path => p_storage_path);
  insert into clinical.shell_files as f (
    patient_id, storage_path, filename, mime_type, size_bytes, idempotency_key, uploaded_by, created_at, updated_at
  )
  values (
    p_patient_id, p_storage_path, left(p_file_facts ->> 'filename', 500), left(p_file_facts ->> 'mime_type', 200),
    case when p_file_facts ->> 'size_bytes' ~ '^[0-9]{1,15}$' then (p_file_facts ->> 'size_bytes')::bigint end,
    p_idempotency_key, clinical.user_id(), trunkline.clock(), trunkline.clock()
  )
  -- A concurrent upload with the same key waits here for the first to commit, and then finds its row.
  on conflict (patient_id, idempotency_key) where idempotency_key is not null do nothing
  returning f.id into v_file;
  if v_file is null then
    return query
    select f.id, f.job_id
    from clinical.shell_files as f
    where f.patient_id = p_patient_id and f.idempotency_key = p_idempotency_key;
    return;
  end if;
  if not v_is_service then
    -- A user has no rights on the engine; for this workflow it acts for the patient that it has access to.
    perform set_config('trunkline.tenant', p_patient_id::text, true);
  end if;
  v_job := clinical.start_pipeline(
    p_file => v_file, p_first => v_first, p_payload => '{}',
    p_tags => clinical.job_tags(p_name => coalesce(left(p_file_facts ->> 'filename', 40), 'upload'), p_category => null)
  );
  perform set_config('trunkline.tenant', v_acted_for, true);
  perform clinical.write_audit(
    p_table_name => 'shell_files', p_record_id => v_file::text, p_action => 'INSERT',
    p_new_values => jsonb_build_object('storage_path', p_storage_path, 'job_id', v_job), p_reason => 'file uploaded',
    p_origin => case when v_is_service then 'system' else 'user' end, p_patient_id => p_patient_id, p_job_id => v_job
  );
  return query select v_file, v_job;
end;
$$;
comment on function clinical.submit_upload(uuid, text, jsonb, text) is 'Stores a patient''s file and starts its pipeline, both or neither; the same key returns the same file and job.';

create or replace function clinical.audit_logger_v3(
  p_patient_id uuid,
  p_job_id uuid,
  p_action text,
  p_reason text,
  p_new_values jsonb default null
)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_acted_for text := coalesce(current_setting('trunkline.tenant', true), '');
  v_is_known boolean;
  v_is_service boolean := clinical.is_service_role();
begin
  if not (v_is_service or clinical.has_profile_access(p_patient => p_patient_id)) then
    perform clinical.refuse(p_code => 'access_denied', p_message => 'permission denied for the profile of the patient');
  end if;
  if not v_is_service then
    perform set_config('trunkline.tenant', p_patient_id::text, true);
  end if;
  v_is_known := exists (
    select
    from trunkline.job(p_job => p_job_id) as j
    join clinical.job_types as t on t.job_type = j.task
    where j.tenant = p_patient_id::text
  );
  perform set_config('trunkline.tenant', v_acted_for, true);
  if not v_is_known then
    perform clinical.refuse(
      p_code => 'job_id_missing', p_message => 'the event names no job of the patient',
      p_detail => jsonb_build_object('job_id', p_job_id, 'patient_id', p_patient_id)
    );
  end if;
  return clinical.write_audit(
    p_table_name => 'client_event', p_record_id => p_job_id::text, p_action => p_action, p_new_values => p_new_values,
    p_reason => p_reason, p_origin => case when v_is_service then 'system' else 'user' end,
    p_patient_id => p_patient_id, p_job_id => p_job_id
  );
end;
$$;
comment on function clinical.audit_logger_v3(uuid, uuid, text, text, jsonb) is 'Writes an audit event of a client, about a job of a patient the caller has access to.';

create or replace function clinical.client_health(p_function text)
returns jsonb
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
  -- Whether the function exists and may be called, and whether uploads and enqueues are open.
  select jsonb_build_object(
    'function', f.name,
    'healthy', f.there and f.callable and f.open,
    'there', f.there, 'callable', f.callable, 'open', f.open,
    'at', trunkline.clock()
  )
  from (
    select
      p_function as name,
      coalesce(p.oid is not null, false) as there,
      coalesce(has_function_privilege(r.caller, p.oid, 'execute'), false) as callable,
      p_function <> 'shell-file-processor-v3'
        or clinical.configured(p_key => 'queue.v3_enqueue_enabled') = 'true' as open
    from (
      values ('shell-file-processor-v3', 'submit_upload'), ('audit-logger-v3', 'audit_logger_v3')
    ) as k (name, stands_for)
    cross join (
      select coalesce(
        (select o.rolname from pg_roles as o where o.rolname = 'authenticated'), 'trunkline_producer'
      )::name as caller
    ) as r
    left join pg_proc as p on p.proname = k.stands_for and p.pronamespace = 'clinical'::regnamespace
    where k.name = p_function
  ) as f
$$;
comment on function clinical.client_health(text) is 'Returns whether a client function can work: shell-file-processor-v3 or audit-logger-v3; reveals no secrets.';

-- Functions through which a worker reads and writes clinical data of the job it has claimed, fenced by attempt and worker.
-- requires: files, audit, work
-- source: 8 (audited writes)

create or replace function clinical.require_claim(p_job uuid, p_attempt integer, p_worker text)
returns table (job_type text, patient_id uuid, file_id uuid)
language plpgsql
stable
rows 1
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_attempt is null or clinical.running_attempt(p_job => p_job, p_worker => p_worker, p_attempt => p_attempt) is null then
    perform clinical.refuse(
      p_code => 'stale_stage', p_message => format('attempt %s of job %s is not run by %s', p_attempt, p_job, p_worker),
      p_detail => jsonb_build_object('job_id', p_job, 'attempt', p_attempt, 'worker', p_worker)
    );
  end if;
  return query
  select j.task, clinical.as_uuid(p_text => j.tenant), f.id
  from trunkline.job(p_job => p_job) as j
  -- The file must belong to the job's patient: the payload alone proves nothing, because a producer wrote it.
  left join clinical.shell_files as f
    on f.id = clinical.as_uuid(p_text => j.payload ->> 'shell_file_id') and f.patient_id::text = j.tenant;
end;
$$;
comment on function clinical.require_claim(uuid, integer, text) is 'Returns the type, the patient and the file of a running attempt; refuses an attempt that this worker does not run.';

create or replace function clinical.stage_file(p_job uuid, p_attempt integer, p_worker text)
returns table (storage_path text, mime_type text, size_bytes bigint)
language sql
stable
security definer
rows 1
set search_path = pg_catalog, pg_temp
as $$
  select f.storage_path, f.mime_type, f.size_bytes
  from clinical.require_claim(p_job => p_job, p_attempt => p_attempt, p_worker => p_worker) as c
  join clinical.shell_files as f on f.id = c.file_id
$$;
comment on function clinical.stage_file(uuid, integer, text) is 'Returns where the file of a claimed job is stored, with the type and size given at the upload; no row if the job has no file.';

create or replace function clinical.stage_records(p_job uuid, p_attempt integer, p_worker text)
returns table (stage text, record_kind text, record_key text, body jsonb)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
  select r.stage, r.record_kind, r.record_key, r.body
  from clinical.require_claim(p_job => p_job, p_attempt => p_attempt, p_worker => p_worker) as c
  join clinical.clinical_records as r on r.shell_file_id = c.file_id and r.patient_id = c.patient_id
$$;
comment on function clinical.stage_records(uuid, integer, text) is 'Returns the records of the file of a claimed job.';

-- The earlier version accepted any file, job and stage from the caller.
drop function if exists clinical.write_record(uuid, uuid, text, text, jsonb, text, text);

create or replace function clinical.write_record(
  p_job uuid,
  p_attempt integer,
  p_worker text,
  p_kind text,
  p_body jsonb,
  p_key text default '',
  p_reason text default null
)
returns uuid
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_claim record;
  v_is_new boolean := false;
  v_now timestamptz := trunkline.clock();
  v_old jsonb;
  v_record uuid;
begin
  select c.* into v_claim from clinical.require_claim(p_job => p_job, p_attempt => p_attempt, p_worker => p_worker) as c;
  if v_claim.file_id is null then
    perform clinical.refuse(
      p_code => 'unknown_file', p_message => format('job %s has no file of its patient', p_job),
      p_detail => jsonb_build_object('job_id', p_job)
    );
  end if;
  loop
    select r.id, r.body into v_record, v_old
    from clinical.clinical_records as r
    where r.shell_file_id = v_claim.file_id and r.stage = v_claim.job_type and r.record_kind = p_kind and r.record_key = p_key
    for update;
    if found then
      update clinical.clinical_records as r set body = p_body, job_id = p_job, updated_at = v_now where r.id = v_record;
      exit;
    end if;
    insert into clinical.clinical_records (
      patient_id, shell_file_id, job_id, stage, record_kind, record_key, body, created_at, updated_at
    )
    values (v_claim.patient_id, v_claim.file_id, p_job, v_claim.job_type, p_kind, p_key, p_body, v_now, v_now)
    on conflict (shell_file_id, stage, record_kind, record_key) do nothing
    returning id into v_record;
    v_is_new := found;
    -- Another job has just inserted the record: the audit event needs the body that this one replaces.
    exit when v_is_new;
  end loop;
  perform clinical.write_audit(
    p_table_name => 'clinical_records', p_record_id => v_record::text,
    p_action => case when v_is_new then 'INSERT' else 'UPDATE' end,
    p_old_values => v_old, p_new_values => p_body,
    p_reason => coalesce(p_reason, v_claim.job_type || ' wrote ' || p_kind), p_patient_id => v_claim.patient_id, p_job_id => p_job
  );
  return v_record;
end;
$$;
comment on function clinical.write_record(uuid, integer, text, text, jsonb, text, text) is 'Inserts or replaces one clinical record for the file of a claimed job, with its audit event; a repeated attempt leaves one record.';

-- The earlier version took no attempt, so any caller could write an event about anything.
drop function if exists clinical.log_audit_event(text, text, text, jsonb, jsonb, text, text, uuid, uuid);

create or replace function clinical.log_audit_event(
  p_table_name text,
  p_record_id text,
  p_action text,
  p_old_values jsonb default null,
  p_new_values jsonb default null,
  p_reason text default null,
  p_origin text default 'system',
  p_patient_id uuid default null,
  p_job_id uuid default null,
  p_attempt integer default null,
  p_worker text default null
)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  c_own constant text[] := array['job_queue', 'shell_files', 'clinical_records', 'client_event'];
  c_operators constant text[] := array['system_configuration', 'api_rate_limits', 'rollout_results'];
  v_is_operator boolean := clinical.is_operator();
  v_patient uuid := p_patient_id;
begin
  if not v_is_operator then
    select c.patient_id into v_patient
    from clinical.require_claim(p_job => p_job_id, p_attempt => p_attempt, p_worker => p_worker) as c;
  end if;
  if coalesce(p_origin, 'system') <> 'system'
    or p_table_name = any (c_own)
    or not v_is_operator and p_table_name = any (c_operators)
    -- An event about clinical data without a patient is refused below, with a separate code.
    or p_patient_id is not null and p_patient_id is distinct from v_patient
  then
    perform clinical.refuse(
      p_code => 'audit_denied', p_message => format('this caller writes no audit event about %s with origin %s', p_table_name, p_origin),
      p_detail => jsonb_build_object('table', p_table_name, 'origin', p_origin, 'patient_id', p_patient_id, 'job_id', p_job_id)
    );
  end if;
  return clinical.write_audit(
    p_table_name => p_table_name, p_record_id => p_record_id, p_action => p_action, p_old_values => p_old_values,
    p_new_values => p_new_values, p_reason => p_reason, p_patient_id => p_patient_id, p_job_id => p_job_id
  );
end;
$$;
comment on function clinical.log_audit_event(text, text, text, jsonb, jsonb, text, text, uuid, uuid, integer, text) is 'Writes one audit event about one of your own tables, in the transaction of the change: a worker for the patient of its running attempt, an operator for any patient.';

-- Uploaded files, and the records that the pipeline writes about them.
-- requires: base, patients, audit
-- source: 1, 2

create table if not exists clinical.shell_files (
  id uuid primary key default gen_random_uuid(),
  patient_id uuid not null references clinical.user_profiles (id) on delete cascade,
  storage_path text not null,
  filename text,
  mime_type text,
  size_bytes bigint check (size_bytes >= 0),
  idempotency_key text check (idempotency_key <> '' and length(idempotency_key) <= 200),
  processing_error jsonb check (jsonb_typeof(processing_error) = 'object'),
  job_id uuid,
  uploaded_by uuid,
  completed_at timestamptz,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp(),
  constraint shell_files_in_folder_of_patient check (
    starts_with(storage_path, patient_id::text || '/') and storage_path !~ '(^|/)\.{1,2}(/|$)' and length(storage_path) <= 1000
  )
);
-- The workflow whose jobs are the stages of the file.
alter table clinical.shell_files add column if not exists workflow_id uuid;
create unique index if not exists shell_files_by_workflow on clinical.shell_files (workflow_id) where workflow_id is not null;
-- Per patient: a key of one patient neither collides with nor reveals another's.
create unique index if not exists idx_shell_files_idempotency_key
on clinical.shell_files (patient_id, idempotency_key)
where idempotency_key is not null;
create index if not exists shell_files_by_patient on clinical.shell_files (patient_id, created_at);
comment on table clinical.shell_files is 'Uploaded files, each in the folder of its patient, with the workflow of its stages and the first of their jobs.';

create table if not exists clinical.clinical_records (
  id uuid primary key default gen_random_uuid(),
  patient_id uuid not null references clinical.user_profiles (id) on delete cascade,
  shell_file_id uuid not null references clinical.shell_files (id) on delete cascade,
  job_id uuid not null,
  stage text not null,
  record_kind text not null check (record_kind <> '' and length(record_kind) <= 100),
  record_key text not null default '' check (length(record_key) <= 200),
  body jsonb not null,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp(),
  -- A stage that runs again replaces its earlier record.
  unique (shell_file_id, stage, record_kind, record_key)
);
create index if not exists clinical_records_by_patient on clinical.clinical_records (patient_id, created_at);
comment on table clinical.clinical_records is 'Records that stages of the pipeline write about a file, always with an audit event.';

-- A write without an audit event is refused at the end of its transaction. A removal writes its event itself.
drop trigger if exists require_audit on clinical.shell_files;
create constraint trigger require_audit
after insert or update on clinical.shell_files deferrable initially deferred
for each row execute function clinical.require_audit();
drop trigger if exists audit_removal on clinical.shell_files;
create trigger audit_removal after delete on clinical.shell_files for each row execute function clinical.audit_removal();
alter table clinical.shell_files enable row level security;
alter table clinical.shell_files force row level security;
drop policy if exists service_only on clinical.shell_files;
create policy service_only on clinical.shell_files
to trunkline_owner, trunkline_producer, trunkline_operator using (true) with check (true);
drop policy if exists profile_access on clinical.shell_files;
drop trigger if exists require_audit on clinical.clinical_records;
create constraint trigger require_audit
after insert or update on clinical.clinical_records deferrable initially deferred
for each row execute function clinical.require_audit();
drop trigger if exists audit_removal on clinical.clinical_records;
create trigger audit_removal after delete on clinical.clinical_records for each row execute function clinical.audit_removal();
alter table clinical.clinical_records enable row level security;
alter table clinical.clinical_records force row level security;
drop policy if exists service_only on clinical.clinical_records;
create policy service_only on clinical.clinical_records
to trunkline_owner, trunkline_producer, trunkline_operator using (true) with check (true);
drop policy if exists profile_access on clinical.clinical_records;

do $clients$
begin
  if exists (select from pg_roles as r where r.rolname = 'authenticated') then
    create policy profile_access on clinical.shell_files for select
    to authenticated using (clinical.has_profile_access(p_patient => patient_id));
    create policy profile_access on clinical.clinical_records for select
    to authenticated using (clinical.has_profile_access(p_patient => patient_id));
  end if;
end
$clients$;

create or replace function clinical.set_file_state(p_file uuid, p_job uuid, p_error jsonb)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_file clinical.shell_files;
  v_now timestamptz := trunkline.clock();
begin
  select f.* into v_file from clinical.shell_files as f where f.id = p_file for update;
  if not found or p_error is not null and v_file.processing_error = p_error then
    return false;
  end if;
  update clinical.shell_files as f
  set
    processing_error = p_error,
    completed_at = case when p_error is null then v_now else f.completed_at end,
    updated_at = v_now
  where f.id = p_file;
  perform clinical.write_audit(
    p_table_name => 'shell_files', p_record_id => p_file::text, p_action => 'UPDATE',
    p_old_values => jsonb_build_object('processing_error', v_file.processing_error, 'completed_at', v_file.completed_at),
    p_new_values => jsonb_build_object('processing_error', p_error, 'completed_at', case when p_error is null then v_now end),
    p_reason => case when p_error is null then 'pipeline completed' else 'pipeline stopped' end,
    p_patient_id => v_file.patient_id, p_job_id => p_job
  );
  return true;
end;
$$;
comment on function clinical.set_file_state(uuid, uuid, jsonb) is 'Records at a file that its pipeline is complete, or the error at which it stopped, with an audit event.';

create or replace function clinical.file_of(p_workflow uuid)
returns uuid
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  -- Only this table links files to workflows: payloads, tags and tenants may come from any producer.
  with recursive runs (workflow_id) as (
    select p_workflow
    union
    select w.rerun_of
    from runs as r
    join trunkline.workflows as w on w.workflow_id = r.workflow_id
    where w.rerun_of is not null
  )
  select f.id from runs as r join clinical.shell_files as f on f.workflow_id = r.workflow_id limit 1
$$;
comment on function clinical.file_of(uuid) is 'Returns the file of a pipeline, also for a workflow that an operator started from it again; null for any other workflow.';

create or replace function clinical.note_stopped_file(p_job uuid)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_dead record;
begin
  select
    clinical.file_of(p_workflow => q.workflow_id) as file,
    q.error_details - 'history' || jsonb_build_object('job_id', q.id, 'job_type', q.job_type) as error
  into v_dead
  from clinical.job_queue as q
  where q.id = p_job and q.status = 'failed';
  if v_dead.file is null then
    return false;
  end if;
  return clinical.set_file_state(p_file => v_dead.file, p_job => p_job, p_error => v_dead.error);
end;
$$;
comment on function clinical.note_stopped_file(uuid) is 'Records the error of a dead stage at its file; returns whether it did.';

create or replace function clinical.note_stopped_files(p_limit integer default 100)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_changed integer := 0;
  v_ended record;
begin
  if p_limit is null or p_limit not between 1 and 10000 then
    perform clinical.refuse(
      p_code => 'invalid_argument', p_message => format('p_limit is not from 1 to 10000: %s', p_limit),
      p_detail => jsonb_build_object('argument', 'p_limit', 'minimum', 1, 'maximum', 10000)
    );
  end if;
  for v_ended in
    select d.job_id
    from trunkline.dead_letters as d
    join trunkline.jobs as j on j.job_id = d.job_id
    join clinical.shell_files as f on f.id = clinical.file_of(p_workflow => j.workflow_id)
    where f.processing_error ->> 'job_id' is distinct from d.job_id::text and f.completed_at is null
    order by d.died_at desc
    limit p_limit
  loop
    v_changed := v_changed + clinical.note_stopped_file(p_job => v_ended.job_id)::integer;
  end loop;
  -- Of stages that were completed without a function of this profile, for example by an operator.
  for v_ended in
    select f.id, f.job_id
    from clinical.shell_files as f
    join trunkline.workflows as w on w.workflow_id = f.workflow_id
    where f.completed_at is null and w.ended_at is not null and w.state = 'completed'
    limit p_limit
  loop
    v_changed := v_changed + clinical.set_file_state(p_file => v_ended.id, p_job => v_ended.job_id, p_error => null)::integer;
  end loop;
  return v_changed;
end;
$$;
comment on function clinical.note_stopped_files(integer) is 'Records at files that their pipelines have ended: the errors of dead stages, and completions that no worker has reported here; the task system_maintenance calls it. Returns how many files it changed.';

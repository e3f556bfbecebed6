-- why: artifacts: files that jobs produce, quotas and retention for them, and what a sweep has to remove
-- breaking: no

alter table trunkline_internal.running add column has_files boolean;
comment on column trunkline_internal.running.has_files is 'Set by the first upload of the attempt, so that the end of any other attempt need not look for files.';

create table trunkline_internal.staged_artifacts (
  artifact_id uuid not null constraint staged_artifacts_pkey primary key,
  job_id uuid not null,
  begun_at timestamptz not null,
  staged_at timestamptz,
  reserved_bytes bigint not null default 0 check (reserved_bytes >= 0),
  bytes bigint check (bytes >= 0),
  duration double precision check (duration >= 0),
  attempt integer not null,
  kept boolean not null default false,
  tenant text,
  name text not null,
  kind text not null,
  content_type text not null,
  path text not null constraint staged_artifacts_path unique,
  sha256 text,
  step text,
  constraint staged_artifacts_is_whole check ((staged_at is null) = (bytes is null) and (staged_at is null) = (sha256 is null))
);
comment on table trunkline_internal.staged_artifacts is 'Files that running attempts upload. The row comes first, so that no file is ever unknown; complete turns it into an artifact.';
comment on column trunkline_internal.staged_artifacts.staged_at is 'When the upload was complete. Null while it is under way.';
comment on column trunkline_internal.staged_artifacts.reserved_bytes is 'Bytes of the quota that the upload may use. They count while the attempt runs.';
comment on column trunkline_internal.staged_artifacts.step is 'The durable step that uploaded the file.';
comment on column trunkline_internal.staged_artifacts.kept is 'Whether that step was recorded: then the file belongs to the job, whatever happens to the attempt.';
create index staged_artifacts_by_job on trunkline_internal.staged_artifacts (job_id);
create index staged_artifacts_by_tenant on trunkline_internal.staged_artifacts (tenant);
alter table trunkline_internal.staged_artifacts enable row level security, force row level security;
create policy owner_rows on trunkline_internal.staged_artifacts to trunkline_owner using (true) with check (true);
create policy tenant_rows on trunkline_internal.staged_artifacts for select
  using (tenant = nullif(current_setting('trunkline.tenant', true), ''));

create table trunkline_internal.artifacts (
  artifact_id uuid not null constraint artifacts_pkey primary key,
  job_id uuid not null,
  workflow_id uuid,
  published_at timestamptz not null,
  expires_at timestamptz,
  deleted_at timestamptz,
  missing_at timestamptz,
  bytes bigint not null,
  duration double precision,
  attempt integer not null,
  tenant text,
  task text not null,
  name text not null,
  kind text not null,
  content_type text not null,
  path text not null constraint artifacts_path unique,
  sha256 text not null,
  step text,
  deleted_by text,
  delete_reason text,
  constraint artifacts_by_name unique (job_id, kind, name),
  constraint artifacts_deleted_by_somebody check ((deleted_at is null) = (deleted_by is null))
);
comment on table trunkline_internal.artifacts is 'Files of completed jobs. A deleted one stays as a tombstone for a while.';
comment on column trunkline_internal.artifacts.missing_at is 'When a sweep found that the store does not have the file any more.';
create index artifacts_by_workflow on trunkline_internal.artifacts (workflow_id, artifact_id) where workflow_id is not null;
create index artifacts_by_tenant on trunkline_internal.artifacts (tenant, artifact_id);
create index artifacts_by_expiry on trunkline_internal.artifacts (expires_at) where deleted_at is null and expires_at is not null;
create index artifacts_deleted on trunkline_internal.artifacts (deleted_at) where deleted_at is not null;
create index artifacts_missing on trunkline_internal.artifacts (missing_at) where missing_at is not null and deleted_at is null;
alter table trunkline_internal.artifacts enable row level security, force row level security;
create policy owner_rows on trunkline_internal.artifacts to trunkline_owner using (true) with check (true);
create policy tenant_rows on trunkline_internal.artifacts for select
  using (tenant = nullif(current_setting('trunkline.tenant', true), ''));

create table trunkline_internal.file_removals (
  path text not null constraint file_removals_pkey primary key,
  queued_at timestamptz not null,
  due_at timestamptz not null,
  tries integer not null default 0,
  reason text not null,
  last_error text
);
comment on table trunkline_internal.file_removals is 'Files that the sweeper of some worker deletes from the store.';
comment on column trunkline_internal.file_removals.due_at is 'When the next try may begin. A worker that takes a file sets it ahead.';
create index file_removals_by_time on trunkline_internal.file_removals (due_at);
alter table trunkline_internal.file_removals enable row level security, force row level security;
create policy owner_rows on trunkline_internal.file_removals to trunkline_owner using (true) with check (true);

create table trunkline_internal.storage_quotas (
  tenant text not null constraint storage_quotas_pkey primary key,
  max_bytes bigint not null check (max_bytes >= 0),
  updated_at timestamptz not null,
  updated_by text not null
);
comment on table trunkline_internal.storage_quotas is 'How many bytes the artifacts of a tenant may take. An empty tenant stands for jobs without one.';
alter table trunkline_internal.storage_quotas enable row level security, force row level security;
create policy owner_rows on trunkline_internal.storage_quotas to trunkline_owner using (true) with check (true);
create policy tenant_rows on trunkline_internal.storage_quotas for select
  using (tenant = nullif(current_setting('trunkline.tenant', true), ''));

-- Differences instead of a sum for each tenant: completions that update one row would wait for each other's commit.
create table trunkline_internal.storage_usage (
  usage_id bigint generated always as identity constraint storage_usage_pkey primary key,
  bytes bigint not null,
  files bigint not null,
  tenant text not null
);
comment on table trunkline_internal.storage_usage is 'Changes of the bytes and files of a tenant. A duty adds them up.';
comment on sequence trunkline_internal.storage_usage_usage_id_seq is 'Numbers of changes of storage.';
create index storage_usage_by_tenant on trunkline_internal.storage_usage (tenant);
alter table trunkline_internal.storage_usage enable row level security, force row level security;
create policy owner_rows on trunkline_internal.storage_usage to trunkline_owner using (true) with check (true);
create policy tenant_rows on trunkline_internal.storage_usage for select
  using (tenant = nullif(current_setting('trunkline.tenant', true), ''));

create table trunkline_internal.artifact_kinds (
  kind text not null constraint artifact_kinds_pkey primary key,
  retention interval not null check (retention > interval '0'),
  updated_at timestamptz not null,
  updated_by text not null
);
comment on table trunkline_internal.artifact_kinds is 'How long artifacts of a kind are kept, where it is not the setting artifact_retention.';
alter table trunkline_internal.artifact_kinds enable row level security, force row level security;
create policy owner_rows on trunkline_internal.artifact_kinds to trunkline_owner using (true) with check (true);

create table trunkline_internal.store_sweep (
  only_row boolean not null default true constraint store_sweep_pkey primary key check (only_row),
  installation uuid not null default gen_random_uuid(),
  leased_until timestamptz,
  next_at timestamptz,
  ended_at timestamptz,
  artifact_cursor uuid,
  orphans bigint not null default 0,
  worker text,
  file_cursor text
);
comment on table trunkline_internal.store_sweep is 'How far the sweep of the store has come, in one row.';
comment on column trunkline_internal.store_sweep.installation is 'Names this database in the store, so that another database does not delete its files.';
comment on column trunkline_internal.store_sweep.orphans is 'Files without a row that sweeps have found so far.';
alter table trunkline_internal.store_sweep enable row level security, force row level security;
create policy owner_rows on trunkline_internal.store_sweep to trunkline_owner using (true) with check (true);
insert into trunkline_internal.store_sweep default values;

create type trunkline.begun_artifact as (artifact_id uuid, path text, reserved_bytes bigint);
comment on type trunkline.begun_artifact is 'Where to upload an artifact, and how many bytes are reserved for it; null without a quota.';

create type trunkline.stored_artifact as (
  artifact_id uuid,
  job_id uuid,
  workflow_id uuid,
  tenant text,
  task text,
  attempt integer,
  step text,
  name text,
  kind text,
  content_type text,
  bytes bigint,
  sha256 text,
  duration double precision,
  storage_path text,
  published_at timestamptz,
  expires_at timestamptz,
  deleted_at timestamptz,
  delete_reason text,
  missing_at timestamptz
);
comment on type trunkline.stored_artifact is 'An artifact of a completed job.';

create type trunkline.sweep_turn as (installation uuid, file_cursor text, before timestamptz);
comment on type trunkline.sweep_turn is 'Where the sweep of the store continues, and the age from which on a file without a row counts as an orphan.';

create type trunkline.checked_artifact as (artifact_id uuid, path text, bytes bigint);
comment on type trunkline.checked_artifact is 'An artifact whose file the sweep looks up in the store.';

insert into trunkline_internal.settings (name, kind, default_value, minimum, maximum, description) values
  ('artifact_retention', 'interval', '30 days', '1 minute', '36500 days',
    'How long artifacts are kept, unless set_artifact_retention says otherwise for their kind.'),
  ('artifact_tombstones', 'interval', '30 days', '0 seconds', '36500 days', 'How long the row of a deleted artifact is kept.'),
  ('max_result_bytes', 'integer', '33554432', '1024', '1073741824',
    'Largest result that a worker with a store uploads there, because it is over max_payload_bytes.'),
  ('orphan_age', 'interval', '24 hours', '1 hour', '3650 days',
    'How old a file without an artifact must be before a sweep deletes it.'),
  ('storage_quota_mb', 'integer', '0', '0', '2147483647',
    'Megabytes that the artifacts of a tenant may take if it has no own quota. 0 means any number.');

insert into trunkline_internal.duties (duty, every, run_order, builtin, needs_all_tenants, function, description) values
  ('sweep_artifacts', '30 seconds', 10, true, false, 'trunkline_internal.duty_sweep_artifacts',
    'Queues files of ended attempts and expired artifacts for removal, and drops old tombstones.');

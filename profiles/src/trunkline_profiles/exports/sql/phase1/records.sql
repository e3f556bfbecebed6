-- The records of an export: what was asked for, and what came of it. The state of the job is the engine's.
-- requires: base, documents
-- source: 2.2

create table if not exists exports.requests (
  job_id uuid primary key,
  user_id uuid not null,
  document_id uuid not null,
  document_version integer not null,
  format text not null default 'pdf' check (format = 'pdf'),
  options jsonb not null,
  batch_id uuid,
  dedupe_key text not null,
  reserved_bytes bigint not null check (reserved_bytes >= 0),
  created_at timestamptz not null,
  -- Set by the next request of the user after the job has ended: such a row reserves nothing and counts for no limit.
  is_closed boolean not null default false
);
create index if not exists export_jobs_user_idx on exports.requests (user_id, created_at desc);
create index if not exists requests_open on exports.requests (user_id) where not is_closed;
create index if not exists requests_by_document on exports.requests (document_id) where not is_closed;
create index if not exists requests_by_batch on exports.requests (batch_id, job_id) where batch_id is not null;
create index if not exists requests_by_time on exports.requests (created_at);
-- The engine's key of a live job decides; this index finds the requests of a key.
create index if not exists requests_by_key on exports.requests (user_id, dedupe_key) where not is_closed;
comment on table exports.requests is 'What was asked for, one row for each job. The view export_jobs adds the state.';
alter table exports.requests enable row level security;
alter table exports.requests force row level security;
drop policy if exists own_rows on exports.requests;
create policy own_rows on exports.requests for select using (exports.sees(p_user_id => user_id));
-- Functions of the owner name the user in each statement; the cleanup of an administrator reaches all.
drop policy if exists owner_rows on exports.requests;
create policy owner_rows on exports.requests to trunkline_owner using (true) with check (true);

create table if not exists exports.export_history (
  id uuid primary key default gen_random_uuid(),
  user_id uuid not null,
  -- The history outlives the document.
  document_id uuid references exports.documents (id) on delete set null,
  document_version integer not null,
  format text not null default 'pdf' check (format = 'pdf'),
  template_slug text not null,
  file_name text not null,
  -- Where the file is in the store: a reference, never a signed link.
  file_path text not null,
  file_size bigint not null check (file_size >= 0),
  page_count integer not null check (page_count >= 1),
  download_count integer not null default 0 check (download_count >= 0),
  created_at timestamptz not null,
  expires_at timestamptz not null,
  -- The file was queued for removal; deleted_at is when it was really gone, or when the user deleted it.
  removal_queued_at timestamptz,
  deleted_at timestamptz,
  artifact_id uuid not null,
  job_id uuid not null unique
);
create index if not exists export_history_user_idx on exports.export_history (user_id, created_at desc);
create index if not exists export_history_expires_idx on exports.export_history (expires_at);
create index if not exists history_by_document on exports.export_history (document_id);
create index if not exists history_in_removal on exports.export_history (removal_queued_at)
where removal_queued_at is not null and deleted_at is null;
create index if not exists history_tombstones on exports.export_history (deleted_at) where deleted_at is not null;
comment on table exports.export_history is 'Completed exports. A row stays for 30 days after its file is gone.';
alter table exports.export_history enable row level security;
alter table exports.export_history force row level security;
drop policy if exists own_rows on exports.export_history;
create policy own_rows on exports.export_history for select using (exports.sees(p_user_id => user_id));
-- Functions of the owner name the user in each statement; the cleanup of an administrator reaches all.
drop policy if exists owner_rows on exports.export_history;
create policy owner_rows on exports.export_history to trunkline_owner using (true) with check (true);

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

create or replace function exports.job_status(p_state text)
returns text
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select case p_state when 'running' then 'processing' when 'completed' then 'completed' when 'dead' then 'failed'
    when 'cancelled' then 'cancelled' else 'pending' end
$$;
comment on function exports.job_status(text) is 'Returns the status of an export for the state of its job.';

create or replace function exports.public_error(p_error jsonb, p_state text, p_reason text)
returns text
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  -- Only texts of this list reach a user: messages of libraries name files, statements and addresses.
  select case
    when p_state = 'cancelled' then case p_reason when 'document deleted' then 'The document was deleted' else 'Cancelled' end
    when p_error is null then null
    when p_error ->> 'type' in ('lease_expired', 'worker_gone', 'hard_limit') then 'Job timed out'
    else coalesce(
      (
        select m.message
        from (
          values
            ('RenderTimeout', 'Rendering took too long. Shorten the content and try again.'),
            ('RenderTooLarge', 'Rendering needed too much memory. Shorten the content and try again.'),
            ('document_missing', 'The document no longer exists.'),
            ('invalid_options', 'The options of this export are not valid.'),
            ('storage_full', 'Your storage is full. Delete exports and try again.'),
            ('StorageQuotaExceeded', 'Your storage is full. Delete exports and try again.'),
            ('StoreUnreachable', 'The storage could not be reached.'),
            ('TimeoutError', 'The export took too long.')
        ) as m (name, message)
        where p_error ->> 'type' = m.name or starts_with(p_error ->> 'message', m.name || ':')
        limit 1
      ),
      'The export failed.'
    )
  end
$$;
comment on function exports.public_error(jsonb, text, text) is 'Returns the text about an error that users may read: it names no files, statements or addresses.';

create or replace view exports.export_jobs with (security_barrier = true) as
select
  r.job_id as id, r.user_id, r.document_id, r.document_version, r.format, r.options,
  exports.job_status(p_state => j.state) as status,
  case when j.state = 'completed' then 100 when j.state in ('running', 'cancelled', 'dead') then coalesce(j.progress, 0) else 0 end
    as progress,
  case
    when j.state in ('running', 'completed') or j.state = 'cancelled' and j.attempt > j.failures then least(j.failures + 1, j.max_attempts)
    else j.failures
  end as attempts,
  j.max_attempts,
  case when j.state = 'scheduled' then j.run_at end as run_after,
  h.file_path as result_url, h.file_size, h.page_count,
  exports.public_error(p_error => j.last_error, p_state => j.state, p_reason => j.reason) as error_message,
  case when j.state = 'running' then j.worker end as locked_by,
  case when j.state = 'running' then j.lease_expires_at end as lease_expires_at,
  j.cancel_requested_at,
  j.claimed_at as started_at, j.finished_at as completed_at, r.created_at, r.batch_id, r.dedupe_key, j.priority, h.id as history_id
from exports.requests as r
join trunkline.jobs as j on j.job_id = r.job_id
left join exports.export_history as h on h.job_id = r.job_id
where (select trunkline.tenant_scope() is null) or r.user_id::text = (select trunkline.tenant_scope());
comment on view exports.export_jobs is 'Exports with their state; users see their own.';

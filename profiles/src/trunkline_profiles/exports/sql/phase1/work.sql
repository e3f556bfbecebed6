-- Functions for workers, fenced by worker and attempt: claim, progress, upload, complete, fail, reclaim.
-- requires: base, records, status, tasks, storage
-- source: 2.4, 2.5, 2.6

create or replace function exports.running_attempt(p_job_id uuid, p_worker_id text, p_attempt integer)
returns integer
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  -- Without an attempt, only the worker's name is the fence.
  select m.attempt
  from trunkline.stale_monitor as m
  where m.job_id = p_job_id and m.task = 'export_document' and m.worker = p_worker_id and m.attempt = coalesce(p_attempt, m.attempt)
$$;
comment on function exports.running_attempt(uuid, text, integer) is 'Returns the attempt of an export that this worker runs; null if it runs none, or not this one.';

create or replace function exports.require_attempt(p_job_id uuid, p_worker_id text, p_attempt integer)
returns integer
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_attempt integer := exports.running_attempt(p_job_id => p_job_id, p_worker_id => p_worker_id, p_attempt => p_attempt);
begin
  if v_attempt is null then
    perform exports.refuse(
      p_code => 'stale_job', p_message => format('export %s is not run by %s', p_job_id, coalesce(left(p_worker_id, 200), 'this worker')),
      p_detail => jsonb_build_object('job_id', p_job_id, 'worker_id', left(p_worker_id, 200), 'attempt', p_attempt)
    );
  end if;
  return v_attempt;
end;
$$;
comment on function exports.require_attempt(uuid, text, integer) is 'Returns the attempt of an export that this worker runs, or refuses the call.';

create or replace function exports.export_input(p_job_id uuid, p_worker_id text, p_attempt integer default null)
returns table (
  user_id uuid, document_id uuid, title text, version integer, data jsonb, author text, options jsonb, file_name text,
  problem text
)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform exports.require_attempt(p_job_id => p_job_id, p_worker_id => p_worker_id, p_attempt => p_attempt);
  return query
  select
    r.user_id, r.document_id, d.title, d.version, d.data, exports.person_name(p_user_id => r.user_id), r.options,
    exports.file_name(p_title => d.title),
    case
      when d.id is null then 'document_missing'
      when exports.options_problems(p_options => r.options) is not null then 'invalid_options'
    end
  from exports.requests as r
  left join exports.documents as d on d.id = r.document_id and d.user_id = r.user_id
  where r.job_id = p_job_id
  union all
  -- The user was deleted, and the request with it.
  select null, null, null, null, null, null, null, null, 'document_missing'
  where not exists (select from exports.requests as r where r.job_id = p_job_id);
end;
$$;
comment on function exports.export_input(uuid, text, integer) is 'Returns the document of a claimed export as it is now, with the name of its author, or the problem that ends the export.';

create or replace function exports.fetch_next_export_job(p_user_id uuid default null, p_worker_id text default null)
returns table (
  id uuid, user_id uuid, document_id uuid, document_version integer, format text, options jsonb, status text, attempts integer,
  max_attempts integer, locked_by text, started_at timestamptz, lease_expires_at timestamptz, attempt integer, batch_id uuid
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before text := current_setting('trunkline.tenant', true);
  v_claimed trunkline.claimed_job;
  v_worker text := coalesce(p_worker_id, format('session-%s', pg_backend_pid()));
begin
  if p_user_id is not null then
    perform set_config('trunkline.tenant', exports.acting_user(p_user_id => p_user_id)::text, true);
  end if;
  -- The limits, two of three slots for one user, and the order are the engine's, decided within the claim.
  select c.* into v_claimed
  from trunkline.claim(p_worker => v_worker, p_queues => '{exports}', p_limit => 1, p_tasks => '{export_document}') as c
  where c.job_id is not null;
  perform set_config('trunkline.tenant', coalesce(v_before, ''), true);
  return query
  select
    v_claimed.job_id, r.user_id, r.document_id, r.document_version, r.format, r.options, 'processing', v_claimed.failures + 1,
    v_claimed.max_attempts, v_worker, v_claimed.claimed_at, v_claimed.lease_expires_at, v_claimed.attempt, r.batch_id
  from exports.requests as r
  where r.job_id = v_claimed.job_id;
end;
$$;
comment on function exports.fetch_next_export_job(uuid, text) is 'Claims the next due export, of one user if named, for a worker; no row if none is due or three run.';

create or replace function exports.update_job_progress(p_job_id uuid, p_percent integer, p_worker_id text, p_attempt integer default null)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_attempt integer := exports.running_attempt(p_job_id => p_job_id, p_worker_id => p_worker_id, p_attempt => p_attempt);
  v_verdict text;
begin
  if v_attempt is null then
    return false;
  end if;
  v_verdict := trunkline.progress(p_worker => p_worker_id, p_job => p_job_id, p_attempt => v_attempt, p_percent => p_percent);
  if v_verdict = 'ok' then
    select h.verdict into v_verdict
    from trunkline.heartbeat(p_worker => p_worker_id, p_jobs => array[p_job_id], p_attempts => array[v_attempt]) as h;
  end if;
  if v_verdict = 'cancel' then
    -- The worker stops on false. End the job here, because otherwise it would only end with its lease.
    perform trunkline.acknowledge_cancel(p_worker => p_worker_id, p_jobs => array[p_job_id], p_attempts => array[v_attempt]);
  end if;
  return coalesce(v_verdict = 'ok', false);
end;
$$;
comment on function exports.update_job_progress(uuid, integer, text, integer) is 'Records the percentage of a running export and extends its lease; false if it was cancelled or belongs to another attempt: stop and discard.';

create or replace function exports.prepare_upload(p_job_id uuid, p_worker_id text, p_bytes bigint, p_attempt integer default null)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_attempt integer := exports.require_attempt(p_job_id => p_job_id, p_worker_id => p_worker_id, p_attempt => p_attempt);
begin
  return (trunkline.begin_artifact(
    p_worker => p_worker_id, p_job => p_job_id, p_attempt => v_attempt, p_kind => 'export',
    p_name => exports.file_name(p_title => (
      select d.title from exports.requests as r join exports.documents as d on d.id = r.document_id where r.job_id = p_job_id
    )),
    p_content_type => 'application/pdf', p_bytes => p_bytes
  )).path;
end;
$$;
comment on function exports.prepare_upload(uuid, text, bigint, integer) is 'Returns where a claimed export uploads its file. The file is published when complete_job names it.';

create or replace function exports.record_export(
  p_job_id uuid,
  p_worker_id text,
  p_attempt integer,
  p_artifact uuid,
  p_path text,
  p_bytes bigint,
  p_pages integer,
  p_version integer default null
)
returns uuid
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_attempt integer := exports.require_attempt(p_job_id => p_job_id, p_worker_id => p_worker_id, p_attempt => p_attempt);
  v_history uuid;
  v_limit bigint;
  v_now timestamptz := trunkline.clock();
  v_verdict text;
begin
  -- Records a cancellation that nobody has seen yet, so that the completion in this transaction is refused.
  select h.verdict into v_verdict
  from trunkline.heartbeat(p_worker => p_worker_id, p_jobs => array[p_job_id], p_attempts => array[v_attempt]) as h;
  if v_verdict <> 'ok' then
    return null;
  end if;
  -- Completions of one user take turns, so that two of them cannot pass the limit together.
  perform pg_advisory_xact_lock(hashtextextended('exports:' || r.user_id::text, 0)) from exports.requests as r where r.job_id = p_job_id;
  select s.storage_bytes into v_limit from exports.settings as s;
  insert into exports.export_history (
    user_id, document_id, document_version, template_slug, file_name, file_path, file_size, page_count, created_at, expires_at,
    artifact_id, job_id
  )
  select
    r.user_id, d.id, coalesce(p_version, r.document_version), r.options ->> 'templateSlug', d.title || '.pdf', p_path, p_bytes, p_pages,
    v_now, v_now + s.retention, p_artifact, p_job_id
  from exports.requests as r
  join exports.documents as d on d.id = r.document_id
  cross join exports.settings as s
  where r.job_id = p_job_id
    and exports.used_bytes(p_user_id => r.user_id) + p_bytes <= v_limit
  returning id into v_history;
  if v_history is null then
    perform exports.refuse(
      p_code => case when exists (
        select from exports.requests as r join exports.documents as d on d.id = r.document_id where r.job_id = p_job_id
      ) then 'storage_full' else 'unknown_document' end,
      p_message => 'the export cannot be stored', p_detail => jsonb_build_object('bytes', p_bytes)
    );
  end if;
  return v_history;
end;
$$;
comment on function exports.record_export(uuid, text, integer, uuid, text, bigint, integer, integer) is 'Writes the history of an export in the transaction that completes it; null if it was cancelled. Refuses a file beyond the user''s storage.';

create or replace function exports.complete_job(
  p_job_id uuid,
  p_result_url text,
  p_file_size bigint,
  p_page_count integer,
  p_worker_id text,
  p_sha256 text,
  p_attempt integer default null,
  p_document_version integer default null
)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_artifact uuid;
  v_attempt integer := exports.running_attempt(p_job_id => p_job_id, p_worker_id => p_worker_id, p_attempt => p_attempt);
  v_history uuid;
  v_verdict text;
begin
  if v_attempt is null then
    return false;
  end if;
  v_artifact := trunkline.stage_artifact(
    p_worker => p_worker_id, p_job => p_job_id, p_attempt => v_attempt, p_path => p_result_url, p_bytes => p_file_size,
    p_sha256 => p_sha256
  );
  v_history := exports.record_export(
    p_job_id => p_job_id, p_worker_id => p_worker_id, p_attempt => v_attempt, p_artifact => v_artifact, p_path => p_result_url,
    p_bytes => p_file_size, p_pages => p_page_count, p_version => p_document_version
  );
  select v.verdict into v_verdict
  from trunkline.complete(
    p_worker => p_worker_id, p_jobs => array[p_job_id], p_attempts => array[v_attempt],
    p_results => array[jsonb_build_object('history_id', v_history, 'bytes', p_file_size, 'pages', p_page_count)]
  ) as v;
  return coalesce(v_verdict = 'ok', false);
end;
$$;
comment on function exports.complete_job(uuid, text, bigint, integer, text, text, integer, integer) is 'Completes an export: file, history and state in one transaction. False for a cancelled export and for another attempt, which changes nothing.';

create or replace function exports.fail_job(
  p_job_id uuid,
  p_error text,
  p_worker_id text,
  p_attempt integer default null,
  p_is_permanent boolean default false
)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_attempt integer := exports.running_attempt(p_job_id => p_job_id, p_worker_id => p_worker_id, p_attempt => p_attempt);
begin
  if v_attempt is null then
    return null;
  end if;
  perform trunkline.fail(
    p_worker => p_worker_id, p_jobs => array[p_job_id], p_attempts => array[v_attempt],
    p_errors => array[jsonb_build_object(
      'type', coalesce(left(p_error, 100), 'ExportFailed'), 'message', coalesce(left(p_error, 1000), 'no reason was given')
    )],
    p_retryable => array[not coalesce(p_is_permanent, false)]
  );
  return (select exports.job_status(p_state => j.state) from trunkline.job(p_job => p_job_id) as j);
end;
$$;
comment on function exports.fail_job(uuid, text, text, integer, boolean) is 'Ends an attempt as failed; returns pending, failed after the fifth or for a permanent error, or cancelled. Null for a worker that does not run the export.';

create or replace function exports.reset_stuck_jobs()
returns integer
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
  select count(*)::integer from trunkline.reclaim() as r where r.task = 'export_document'
$$;
comment on function exports.reset_stuck_jobs() is 'Takes back exports that were silent for 15 minutes, or whose worker died; returns how many. Any number of callers may run it at once.';

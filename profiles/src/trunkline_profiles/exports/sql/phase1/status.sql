-- What users see of the state of an export.
-- requires: records
-- source: 2.2

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

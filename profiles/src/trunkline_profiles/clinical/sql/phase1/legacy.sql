-- The old format, for readers of the older system after a roll-back: status running, errors as text.
-- requires: jobs, files
-- source: added (roll-back)

create or replace view clinical.legacy_job_queue with (security_barrier = true) as
select
  coalesce(q.old_id, q.id::text) as id,
  q.job_type, q.job_name, q.job_payload, q.job_category, q.priority, q.scheduled_at,
  case q.status when 'processing' then 'running' when 'retrying' then 'pending' when 'deferred' then 'pending' else q.status end as status,
  q.worker_id, q.started_at, q.completed_at, q.retry_count, q.max_retries,
  coalesce(q.error_details ->> 'message', q.error_details ->> 'error_type', q.error_details ->> 'reschedule_reason') as error_message,
  q.job_result, q.created_at, q.updated_at
from clinical.job_queue as q
-- In the older system a stage had no job before its turn.
where q.waiting_reason is distinct from 'dependency';
comment on view clinical.legacy_job_queue is 'Jobs in the format of the older system: running instead of processing, the error as text, and no stages that wait for an earlier one.';

create or replace view clinical.legacy_shell_files with (security_barrier = true) as
select
  f.id, f.patient_id, f.storage_path, f.filename, f.mime_type, f.size_bytes,
  coalesce(
    f.processing_error ->> 'legacy_error', f.processing_error ->> 'message', f.processing_error ->> 'error_type', f.processing_error::text
  ) as processing_error,
  f.completed_at, f.created_at, f.updated_at
from clinical.shell_files as f;
comment on view clinical.legacy_shell_files is 'Files in the format of the older system: the error as text.';

create or replace function clinical.open_legacy_views()
returns bigint
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  grant select on clinical.legacy_job_queue, clinical.legacy_shell_files to trunkline_producer;
  return 2::bigint;
end;
$$;
comment on function clinical.open_legacy_views() is 'Grants producers, the role of the older system''s services, access to the legacy views; returns the number of views. Workers get no access.';

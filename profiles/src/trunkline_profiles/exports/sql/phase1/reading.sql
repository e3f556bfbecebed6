-- What a user reads and cancels: exports, batches and the history.
-- requires: base, records, status, storage
-- source: 2.6, 2.7, 2.9, 2.10

create or replace function exports.get_job_status(p_job_id uuid)
returns jsonb
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_object(
    'id', j.id, 'documentId', j.document_id, 'batchId', j.batch_id, 'status', j.status, 'progress', j.progress,
    'attempts', j.attempts, 'error', j.error_message, 'historyId', h.id,
    -- A link is signed when it is read; absent once the file has expired.
    'file', case
      when h.id is not null and h.expires_at > (select trunkline.clock()) and h.deleted_at is null and h.removal_queued_at is null
        then jsonb_build_object('path', h.file_path, 'name', h.file_name, 'bytes', h.file_size, 'pages', h.page_count)
    end
  )
  from exports.export_jobs as j
  left join exports.export_history as h on h.job_id = j.id and j.status = 'completed'
  where j.id = p_job_id
$$;
comment on function exports.get_job_status(uuid) is 'Returns an export with its status, progress and file; null if there is none, or none that the caller may see.';

create or replace function exports.cancel_job(p_job_id uuid)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_outcome text;
begin
  if not exists (
    select from exports.requests as r where r.job_id = p_job_id and exports.sees(p_user_id => r.user_id)
  ) then
    perform exports.refuse(
      p_code => 'unknown_job', p_message => format('there is no export %s', p_job_id), p_detail => jsonb_build_object('id', p_job_id)
    );
  end if;
  v_outcome := (trunkline.cancel(p_job => p_job_id, p_reason => 'cancelled by the user')).outcome;
  if v_outcome not in ('cancelled', 'requested') then
    perform exports.refuse(
      p_code => 'already_finished', p_message => format('export %s has ended', p_job_id),
      p_detail => jsonb_build_object('id', p_job_id)
    );
  end if;
  return case v_outcome when 'requested' then 'cancelling' else v_outcome end;
end;
$$;
comment on function exports.cancel_job(uuid) is 'Cancels a waiting export at once and asks the worker of a running one to stop; returns cancelled or cancelling. Refuses one that has ended.';

create or replace function exports.get_batch(p_batch_id uuid)
returns jsonb
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_object(
    'batchId', p_batch_id,
    'status', case
      when count(*) filter (where j.status in ('pending', 'processing')) = 0 then
        case
          when count(*) filter (where j.status = 'completed') = count(*) then 'completed'
          when count(*) filter (where j.status = 'completed') > 0 then 'partial'
          when count(*) filter (where j.status = 'cancelled') = count(*) then 'cancelled'
          else 'failed'
        end
      when count(*) filter (where j.status <> 'pending') > 0 then 'processing'
      else 'pending'
    end,
    -- Failed and cancelled exports are finished too; otherwise one of them would keep the batch below 100 for ever.
    'progress', 100 * count(*) filter (where j.status in ('completed', 'failed', 'cancelled')) / count(*),
    'totalCount', count(*),
    'completedCount', count(*) filter (where j.status = 'completed'),
    'jobs', jsonb_agg(
      jsonb_build_object(
        'id', j.id, 'documentId', j.document_id, 'status', j.status, 'progress', j.progress, 'error', j.error_message
      )
      order by w.workflow_step
    )
  )
  from exports.export_jobs as j
  join trunkline.jobs as w on w.job_id = j.id
  where j.batch_id = p_batch_id
  having count(*) > 0
$$;
comment on function exports.get_batch(uuid) is 'Returns a batch with the state of each export; null if there is none, or none that the caller may see.';

create or replace function exports.batch_files(p_batch_id uuid)
returns jsonb
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := trunkline.clock();
  v_rows record;
begin
  select
    count(*) as total,
    count(*) filter (where j.status = 'completed') as completed,
    count(*) filter (where h.id is not null and h.expires_at > v_now and h.deleted_at is null and h.removal_queued_at is null) as kept,
    jsonb_agg(j.id order by j.created_at, j.id) filter (where j.status = 'completed') as jobs,
    jsonb_agg(h.artifact_id order by j.created_at, j.id) filter (where h.id is not null) as artifacts
  into v_rows
  from exports.export_jobs as j
  left join exports.export_history as h on h.job_id = j.id
  where j.batch_id = p_batch_id;
  if v_rows.completed = 0 then
    perform exports.refuse(
      p_code => 'unknown_batch', p_message => format('there is no completed export of batch %s', p_batch_id),
      p_detail => jsonb_build_object('batchId', p_batch_id)
    );
  end if;
  if v_rows.kept = 0 then
    perform exports.refuse(
      p_code => 'export_expired', p_message => format('the files of batch %s have expired', p_batch_id),
      p_detail => jsonb_build_object('batchId', p_batch_id)
    );
  end if;
  return jsonb_build_object(
    'completedCount', v_rows.completed, 'totalCount', v_rows.total, 'completedJobs', v_rows.jobs, 'artifacts', v_rows.artifacts
  );
end;
$$;
comment on function exports.batch_files(uuid) is 'Returns the files of a batch for its archive; refuses a batch without completed exports, and one whose files have expired.';

create or replace function exports.list_history(p_limit integer default 50, p_before timestamptz default null)
returns setof exports.export_history
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
  select h.*
  from exports.export_history as h
  where exports.sees(p_user_id => h.user_id)
    and h.user_id = coalesce(nullif(trunkline.tenant_scope(), '')::uuid, h.user_id)
    and h.deleted_at is null
    and (p_before is null or h.created_at < p_before)
  order by h.created_at desc, h.id desc
  limit least(greatest(coalesce(p_limit, 50), 1), 200)
$$;
comment on function exports.list_history(integer, timestamptz) is 'Returns a page of the caller''s exports that were not removed, newest first.';

create or replace function exports.require_export(p_history_id uuid)
returns exports.export_history
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_row exports.export_history;
begin
  select h.* into v_row from exports.export_history as h where h.id = p_history_id and exports.sees(p_user_id => h.user_id);
  if v_row.id is null then
    perform exports.refuse(
      p_code => 'unknown_export', p_message => format('there is no export %s', p_history_id),
      p_detail => jsonb_build_object('historyId', p_history_id)
    );
  end if;
  if v_row.expires_at <= trunkline.clock() or v_row.deleted_at is not null or v_row.removal_queued_at is not null then
    perform exports.refuse(
      p_code => 'export_expired', p_message => format('export %s has expired or was deleted', p_history_id),
      p_detail => jsonb_build_object('historyId', p_history_id, 'expiresAt', v_row.expires_at)
    );
  end if;
  return v_row;
end;
$$;
comment on function exports.require_export(uuid) is 'Returns a row of the history whose file is kept; refuses unknown rows, those of others, and expired ones.';

create or replace function exports.read_export(p_history_id uuid)
returns exports.export_history
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
  select exports.require_export(p_history_id => p_history_id)
$$;
comment on function exports.read_export(uuid) is 'Returns a row of the history whose file is kept, without counting a download.';

create or replace function exports.count_download(p_history_id uuid)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_count integer;
begin
  perform exports.require_export(p_history_id => p_history_id);
  update exports.export_history as h
  set download_count = h.download_count + 1
  where h.id = p_history_id
  returning h.download_count into v_count;
  return v_count;
end;
$$;
comment on function exports.count_download(uuid) is 'Adds one to the downloads of an export and returns the new number.';

create or replace function exports.delete_export(p_history_id uuid)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_row exports.export_history;
begin
  select h.* into v_row
  from exports.export_history as h
  where h.id = p_history_id and exports.sees(p_user_id => h.user_id)
  for update of h;
  if v_row.id is null then
    perform exports.refuse(
      p_code => 'unknown_export', p_message => format('there is no export %s', p_history_id),
      p_detail => jsonb_build_object('historyId', p_history_id)
    );
  end if;
  if v_row.deleted_at is not null then
    return false;
  end if;
  perform trunkline.delete_artifact(p_artifact => v_row.artifact_id, p_reason => 'deleted by the user');
  update exports.export_history as h
  set deleted_at = trunkline.clock(), removal_queued_at = coalesce(h.removal_queued_at, trunkline.clock())
  where h.id = p_history_id;
  return true;
end;
$$;
comment on function exports.delete_export(uuid) is 'Deletes an export: the space is free at once, the file is queued for removal, the row stays as a tombstone. False if it was deleted before.';

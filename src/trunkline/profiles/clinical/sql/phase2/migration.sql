-- From the older tables: errors as text become objects, open jobs are taken over, and old readers find old words.
-- requires: jobs, files, rollout
-- source: 2, 5

create or replace function clinical.migrate_errors(p_table regclass, p_column name default 'processing_error')
returns table (total bigint, with_error bigint, migrated bigint)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before bigint;
  v_type oid := (
    select a.atttypid from pg_attribute as a where a.attrelid = p_table and a.attname = p_column and not a.attisdropped
  );
begin
  if v_type is null or v_type not in ('text'::regtype, 'varchar'::regtype, 'jsonb'::regtype) then
    perform clinical.refuse(
      p_code => 'invalid_import', p_message => format('%s has no column %I of type text or jsonb', p_table, p_column),
      p_detail => jsonb_build_object('table', p_table::text, 'column', p_column)
    );
  end if;
  migrated := 0;
  if v_type <> 'jsonb'::regtype then
    execute format('lock table %s in access exclusive mode', p_table);
    execute format('select count(*) from %s as t where t.%I <> %L', p_table, p_column, '') into v_before;
    begin
      -- In place and without CASCADE: a view that reads the column stops this, it is not dropped.
      execute format(
        'alter table %1$s alter column %2$I drop default, alter column %2$I type jsonb using '
        'case when %2$I <> %3$L then jsonb_build_object(%4$L, %2$I, %5$L, trunkline.clock()) end',
        p_table, p_column, '', 'legacy_error', 'migrated_at'
      );
    exception
      when feature_not_supported or dependent_objects_still_exist then
        perform clinical.refuse(
          p_code => 'invalid_import', p_message => format('something depends on %s.%I: %s', p_table, p_column, sqlerrm),
          p_detail => jsonb_build_object('table', p_table::text, 'column', p_column)
        );
    end;
    migrated := v_before;
  end if;
  execute format('select count(*), count(t.%I) from %s as t', p_column, p_table) into total, with_error;
  if v_before <> with_error then
    raise exception 'of % errors % are left', v_before, with_error;
  end if;
  return next;
end;
$$;
comment on function clinical.migrate_errors(regclass, name) is 'Turns a column of errors as text into JSONB: null and empty become null, a text becomes legacy_error with migrated_at. Run again it changes nothing.';

create or replace function clinical.import_files(p_table regclass)
returns bigint
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_count bigint := 0::bigint;
  v_file jsonb;
begin
  for v_file in
    execute format(
      'select f.file from (select to_jsonb(t) as file from %s as t) as f where not exists '
      '(select from clinical.shell_files as s where s.id = (f.file ->> %L)::uuid)', p_table, 'id'
    )
  loop
    insert into clinical.shell_files (
      id, patient_id, storage_path, filename, mime_type, size_bytes, idempotency_key, processing_error, created_at
    )
    select
      f.id, f.patient_id, coalesce(f.storage_path, f.patient_id || '/' || f.id), f.filename, f.mime_type, f.size_bytes, f.idempotency_key,
      f.processing_error, coalesce(f.created_at, trunkline.clock())
    from jsonb_to_record(v_file) as f (
      id uuid, patient_id uuid, storage_path text, filename text, mime_type text, size_bytes bigint, idempotency_key text,
      processing_error jsonb, created_at timestamptz
    );
    perform clinical.log_audit_event(
      p_table_name => 'shell_files', p_record_id => v_file ->> 'id', p_action => 'INSERT',
      p_reason => 'taken over from ' || p_table::text, p_patient_id => (v_file ->> 'patient_id')::uuid
    );
    v_count := v_count + 1;
  end loop;
  return v_count;
end;
$$;
comment on function clinical.import_files(regclass) is 'Takes files over from the older table, each with an audit event; those that are here already are left alone. Tells how many.';

create or replace function clinical.import_jobs(p_table regclass)
returns table (waiting bigint, running bigint)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_claimed uuid;
  v_id uuid;
  v_job record;
  v_row jsonb;
  v_unknown jsonb;
begin
  waiting := 0;
  running := 0;
  execute format(
    'select jsonb_agg(to_jsonb(t) -> %L) from %s as t where (to_jsonb(t) ->> %L) not in '
    '(select j.job_type from clinical.job_types as j) and to_jsonb(t) ->> %L not in (%L, %L, %L)',
    'id', p_table, 'job_type', 'status', 'completed', 'failed', 'cancelled'
  ) into v_unknown;
  if v_unknown is not null then
    perform clinical.refuse(
      p_code => 'invalid_import', p_message => 'open jobs have types that are not in job_types',
      p_detail => jsonb_build_object('jobs', v_unknown)
    );
  end if;
  for v_row in
    execute format(
      'select r.job from (select to_jsonb(t) as job from %s as t) as r '
      'where r.job ->> %L in (%L, %L, %L, %L, %L) and not exists '
      '(select from clinical.imported_jobs as i where i.old_id = r.job ->> %L) order by r.job ->> %L, r.job ->> %L',
      p_table, 'status', 'pending', 'retrying', 'deferred', 'running', 'processing', 'id', 'created_at', 'id'
    )
  loop
    select r.* into v_job
    from jsonb_to_record(v_row) as r (
      id text, job_type text, job_name text, job_payload jsonb, job_category text, priority integer, scheduled_at timestamptz,
      status text, worker_id text, retry_count integer, max_retries integer
    );
    v_id := clinical.import_job(
      p_type => v_job.job_type, p_name => v_job.job_name, p_payload => v_job.job_payload, p_category => v_job.job_category,
      p_priority => v_job.priority, p_run_at => v_job.scheduled_at,
      p_max_attempts => greatest(coalesce(v_job.max_retries, 3) - coalesce(v_job.retry_count, 0), 0) + 1,
      p_is_running => v_job.status in ('running', 'processing')
    );
    insert into clinical.imported_jobs (old_id, job_id, old_status, retry_count)
    values (
      v_job.id, v_id, clinical.job_status(p_state => v_job.status), least(coalesce(v_job.retry_count, 0), coalesce(v_job.max_retries, 3))
    );
    if v_job.status in ('running', 'processing') then
      -- Claimed anew for its old worker: the lease starts now, so that it ends if nobody is there.
      loop
        select c.job_id into v_claimed
        from trunkline.claim(
          p_worker => coalesce(nullif(v_job.worker_id, ''), 'legacy'), p_queues => array['clinical-import'],
          p_tasks => array[v_job.job_type]
        ) as c;
        exit when v_claimed is null or v_claimed = v_id;
      end loop;
      running := running + 1;
    else
      waiting := waiting + 1;
    end if;
  end loop;
  return next;
end;
$$;
comment on function clinical.import_jobs(regclass) is 'Takes open jobs over from the older table: waiting ones wait, running ones run under a new lease that can end; those taken over before are left alone.';

create or replace function clinical.import_job(
  p_type text,
  p_name text,
  p_payload jsonb,
  p_category text,
  p_priority integer,
  p_run_at timestamptz,
  p_max_attempts integer,
  p_is_running boolean
)
returns uuid
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_patient uuid;
  v_type clinical.job_types;
begin
  select t.* into v_type from clinical.job_types as t where t.job_type = p_type;
  select f.patient_id into v_patient
  from clinical.shell_files as f
  where f.id = clinical.as_uuid(p_text => p_payload ->> 'shell_file_id');
  return (trunkline.enqueue(
    p_task => p_type,
    p_payload => coalesce(p_payload, '{}'::jsonb)
      || jsonb_build_object('estimated_tokens', coalesce(p_payload -> 'estimated_tokens', '1000'::jsonb)),
    p_queue => case when p_is_running then 'clinical-import' else 'clinical' end,
    -- What ran before goes first.
    p_priority => case when p_is_running then 49 else greatest(least(coalesce(p_priority, 5), 49), -50) end,
    p_run_at => case when not p_is_running then p_run_at end,
    p_tenant => v_patient::text,
    p_max_attempts => p_max_attempts,
    p_tags => array['job_name:' || left(coalesce(p_name, p_type), 90), 'job_category:' || left(coalesce(p_category, 'standard'), 90)],
    p_cost => case when v_type.api_endpoint is not null then jsonb_build_object('tokens', clinical.checked_estimate(
      p_payload => p_payload, p_provider => v_type.provider_name, p_endpoint => v_type.api_endpoint
    )) end
  )).job_id;
end;
$$;
comment on function clinical.import_job(text, text, jsonb, text, integer, timestamptz, integer, boolean) is 'Makes a job of an older row, with the attempts that it has left.';

create or replace function clinical.take_over(p_step text, p_table text)
returns jsonb
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_answer jsonb;
  v_table regclass := to_regclass(p_table);
begin
  if v_table is null or p_step not in ('errors', 'files', 'jobs') then
    perform clinical.refuse(
      p_code => 'invalid_import', p_message => format('there is no table %s to take %s over from', p_table, p_step),
      p_detail => jsonb_build_object('table', p_table, 'step', p_step)
    );
  end if;
  case p_step
    when 'errors' then
      select to_jsonb(m) into v_answer from clinical.migrate_errors(p_table => v_table) as m;
    when 'files' then
      v_answer := jsonb_build_object('files', clinical.import_files(p_table => v_table));
    else
      select to_jsonb(m) into v_answer from clinical.import_jobs(p_table => v_table) as m;
  end case;
  return v_answer;
end;
$$;
comment on function clinical.take_over(text, text) is 'Takes errors, files or jobs of an older table over, as whoever owns the table and this profile; answers with what it changed.';

create or replace function clinical.record_take_over(p_step text, p_table text, p_dry_run boolean, p_detail jsonb)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  insert into clinical.rollout_results (plan, step, dry_run, outcome, detail, at)
  values (
    'takeover', p_step, p_dry_run,
    case when p_detail ? 'problems' then 'refused' when p_dry_run then 'would_do' else 'done' end,
    p_detail || jsonb_build_object('table', p_table), trunkline.clock()
  )
$$;
comment on function clinical.record_take_over(text, text, boolean, jsonb) is 'Puts the result of a take-over on record, also of one that was only tried or was refused.';

-- Migration from the older tables: errors as text become objects, and files and open jobs are imported.
-- requires: jobs, pipeline, rollout
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
      -- In place and without CASCADE: a view that reads the column makes this fail instead of being dropped.
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
comment on function clinical.migrate_errors(regclass, name) is 'Converts a text column of errors to JSONB: null and empty become null, text becomes legacy_error with migrated_at. A second run changes nothing.';

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
      id, patient_id, storage_path, filename, mime_type, size_bytes, idempotency_key, processing_error, completed_at, created_at
    )
    select
      f.id, f.patient_id, coalesce(f.storage_path, f.patient_id || '/' || f.id), f.filename, f.mime_type, f.size_bytes, f.idempotency_key,
      f.processing_error, f.completed_at, coalesce(f.created_at, trunkline.clock())
    from jsonb_to_record(v_file) as f (
      id uuid, patient_id uuid, storage_path text, filename text, mime_type text, size_bytes bigint, idempotency_key text,
      processing_error jsonb, completed_at timestamptz, created_at timestamptz
    );
    perform clinical.write_audit(
      p_table_name => 'shell_files', p_record_id => v_file ->> 'id', p_action => 'INSERT',
      p_reason => 'taken over from ' || p_table::text, p_patient_id => (v_file ->> 'patient_id')::uuid
    );
    v_count := v_count + 1;
  end loop;
  return v_count;
end;
$$;
comment on function clinical.import_files(regclass) is 'Imports files from the older table, each with an audit event; skips those that already exist. Returns how many.';

create or replace function clinical.check_import(p_table regclass)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_files jsonb;
  v_types jsonb;
begin
  execute format(
    'select jsonb_agg(r.job -> %L) filter (where k.job_type is null), jsonb_agg(r.job -> %L) filter (where k.needs_file and f.id is null) '
    'from (select to_jsonb(t) as job from %s as t) as r '
    'left join clinical.job_types as k on k.job_type = r.job ->> %L '
    'left join clinical.shell_files as f on f.id = clinical.as_uuid(p_text => r.job -> %L ->> %L) '
    'where r.job ->> %L not in (%L, %L, %L) and not exists '
    '(select from clinical.imported_jobs as i where i.old_id = r.job ->> %L)',
    'id', 'id', p_table, 'job_type', 'job_payload', 'shell_file_id', 'status', 'completed', 'failed', 'cancelled', 'id'
  ) into v_types, v_files;
  if v_types is not null then
    perform clinical.refuse(
      p_code => 'invalid_import', p_message => 'open jobs have types that are not in job_types',
      p_detail => jsonb_build_object('jobs', v_types)
    );
  elsif v_files is not null then
    -- Without a file they would belong to no patient, so no worker could run them.
    perform clinical.refuse(
      p_code => 'invalid_import', p_message => 'open jobs name files that are not in shell_files: take files over first',
      p_detail => jsonb_build_object('jobs', v_files)
    );
  end if;
end;
$$;
comment on function clinical.check_import(regclass) is 'Refuses an older table with open jobs whose type or file is unknown here; the detail has their ids.';

create or replace function clinical.stages_left(p_job_type text)
returns integer
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  with recursive stages (job_type, depth) as (
    select t.next_stage, 0 from clinical.job_types as t where t.job_type = p_job_type
    union all
    select t.next_stage, s.depth + 1 from stages as s join clinical.job_types as t on t.job_type = s.job_type where s.depth < 100
  )
  select max(s.depth) from stages as s
$$;
comment on function clinical.stages_left(text) is 'Returns how many stages follow a type in the registry, including those that are switched off.';

create or replace function clinical.limits_of(p_types text[], p_is_wide boolean)
returns jsonb
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  -- As wide as possible instead of no limit, because use without a limit is not counted.
  select coalesce(jsonb_agg(jsonb_build_object(
    'name', l.name, 'status', case when p_is_wide then 'active' else l.status end, 'reason', l.reason,
    'parts', (
      select coalesce(jsonb_object_agg(p.part, case when p_is_wide then p.most else p.allowed end), '{}')
      from (
        values
          ('requests_per_minute', l.requests_per_minute::numeric, 1e12), ('requests_per_hour', l.requests_per_hour, 1e12),
          ('tokens_per_minute', l.tokens_per_minute, 1e12), ('tokens_per_hour', l.tokens_per_hour, 1e12),
          ('concurrency', l.concurrency, 1e5), ('quota', l.quota, 1e15)
      ) as p (part, allowed, most)
      where p.allowed is not null
    )
  )), '[]')
  from trunkline.limits as l
  where l.name in (
    select t.provider_name || '/' || t.api_endpoint from clinical.job_types as t where t.job_type = any (p_types)
  )
$$;
comment on function clinical.limits_of(text[], boolean) is 'Returns the limits of the endpoints of types, as they are or as wide as the engine allows.';

create or replace function clinical.put_limits(p_limits jsonb)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_limit jsonb;
begin
  for v_limit in select l.value from jsonb_array_elements(p_limits) as l loop
    perform trunkline.set_limit(
      p_limit => v_limit ->> 'name', p_parts => v_limit -> 'parts', p_status => v_limit ->> 'status', p_reason => v_limit ->> 'reason'
    );
  end loop;
end;
$$;
comment on function clinical.put_limits(jsonb) is 'Sets limits as limits_of returns them.';

create or replace function clinical.import_jobs(p_table regclass)
returns table (waiting bigint, running bigint)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_is_furthest boolean;
  v_limits jsonb;
  v_row jsonb;
  v_types text[];
begin
  waiting := 0;
  running := 0;
  perform clinical.check_import(p_table => p_table);
  execute format('select array_agg(distinct t.job_type) from %s as t where t.status in (%L, %L)', p_table, 'running', 'processing')
  into v_types;
  -- Running jobs keep running regardless of limits, and are charged. Other sessions never see the wide limits, which are restored
  -- before the commit.
  v_limits := clinical.limits_of(p_types => v_types, p_is_wide => false);
  perform clinical.put_limits(p_limits => clinical.limits_of(p_types => v_types, p_is_wide => true));
  for v_row, v_is_furthest in
    execute format(
      'select r.job, row_number() over ('
      'partition by r.job -> %L ->> %L order by clinical.stages_left(p_job_type => r.job ->> %L), r.job ->> %L, r.job ->> %L'
      ') = 1 from (select to_jsonb(t) as job from %s as t) as r '
      'where r.job ->> %L in (%L, %L, %L, %L, %L) and not exists '
      '(select from clinical.imported_jobs as i where i.old_id = r.job ->> %L) order by r.job ->> %L, r.job ->> %L',
      'job_payload', 'shell_file_id', 'job_type', 'created_at', 'id', p_table,
      'status', 'pending', 'retrying', 'deferred', 'running', 'processing', 'id', 'created_at', 'id'
    )
  loop
    if clinical.import_job(p_row => v_row, p_is_furthest => v_is_furthest) then
      running := running + 1;
    else
      waiting := waiting + 1;
    end if;
  end loop;
  perform clinical.put_limits(p_limits => v_limits);
  perform clinical.import_ends(p_table => p_table);
  return next;
end;
$$;
comment on function clinical.import_jobs(regclass) is 'Imports open jobs from the older table: waiting ones wait, running ones run under a new lease that can expire; skips those imported before.';

-- Earlier versions had other arguments.
drop function if exists clinical.import_job(text, text, jsonb, text, integer, timestamptz, integer, boolean);

create or replace function clinical.import_job(p_row jsonb, p_is_furthest boolean)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_claimed uuid;
  v_continues boolean;
  v_delay interval;
  v_file clinical.shell_files;
  v_id uuid;
  v_is_running boolean := p_row ->> 'status' in ('running', 'processing');
  v_job record;
  v_max_attempts integer;
  v_payload jsonb;
  v_priority integer;
  v_tags text[];
  v_tokens bigint;
  v_type clinical.job_types;
begin
  select r.* into v_job
  from jsonb_to_record(p_row) as r (
    id text, job_type text, job_name text, job_payload jsonb, job_category text, priority integer, scheduled_at timestamptz,
    status text, worker_id text, retry_count integer, max_retries integer
  );
  select t.* into v_type from clinical.job_types as t where t.job_type = v_job.job_type;
  select f.* into v_file from clinical.shell_files as f where f.id = clinical.as_uuid(p_text => v_job.job_payload ->> 'shell_file_id');
  -- One job per file continues its pipeline: the most advanced one.
  v_continues := p_is_furthest and v_type.needs_file and v_file.job_id is null and v_file.completed_at is null;
  v_tokens := clinical.checked_estimate(
    p_payload => v_job.job_payload, p_provider => v_type.provider_name, p_endpoint => v_type.api_endpoint
  );
  v_tags := clinical.job_tags(
    p_name => left(coalesce(v_job.job_name, v_job.job_type), 60), p_category => left(v_job.job_category, 40)
  );
  v_priority := greatest(least(coalesce(v_job.priority, 5), 49), -50);
  v_payload := coalesce(v_job.job_payload, '{}'::jsonb);
  v_max_attempts := greatest(coalesce(v_job.max_retries, 3) - coalesce(v_job.retry_count, 0), 0) + 1;
  v_delay := case when not v_is_running then v_job.scheduled_at - trunkline.clock() end;
  -- Jobs that were running get the highest priority.
  if v_continues then
    v_id := clinical.start_pipeline(
      p_file => v_file.id, p_first => v_job.job_type, p_payload => v_payload, p_tags => v_tags, p_priority => v_priority,
      p_options => jsonb_strip_nulls(jsonb_build_object(
        'queue', case when v_is_running then 'clinical-import' else 'clinical' end,
        'priority', case when v_is_running then 49 end,
        'delay', case when v_delay > interval '0' then v_delay end, 'max_attempts', v_max_attempts
      ))
    );
  else
    v_id := (trunkline.enqueue(
      p_task => v_job.job_type,
      p_payload => clinical.job_payload(p_payload => v_payload, p_type => v_type, p_tokens => v_tokens),
      p_queue => case when v_is_running then 'clinical-import' else 'clinical' end,
      p_priority => case when v_is_running then 49 else v_priority end,
      p_run_at => case when not v_is_running then v_job.scheduled_at end,
      p_tenant => v_file.patient_id::text,
      p_correlation_id => v_file.id::text,
      p_max_attempts => v_max_attempts,
      p_tags => v_tags,
      p_cost => case when v_type.api_endpoint is not null then jsonb_build_object('tokens', v_tokens) end,
      p_accepted => true
    )).job_id;
  end if;
  while v_is_running and v_claimed is distinct from v_id loop
    -- Claimed again for its old worker. The lease starts now, and expires if that worker is gone.
    select c.job_id into v_claimed
    from trunkline.claim(
      p_worker => coalesce(nullif(v_job.worker_id, ''), 'legacy'), p_queues => array['clinical-import'], p_tasks => array[v_job.job_type]
    ) as c
    where c.job_id is not null;
    -- The claim fails while claims are off or the provider is paused. Then the job waits and is reported as waiting.
    v_is_running := v_claimed is not null;
  end loop;
  insert into clinical.imported_jobs (old_id, job_id, old_status, retry_count)
  values (
    v_job.id, v_id,
    case
      when v_is_running or v_job.status not in ('running', 'processing') then clinical.job_status(p_state => v_job.status)
      else 'pending'
    end,
    least(coalesce(v_job.retry_count, 0), coalesce(v_job.max_retries, 3))
  );
  if v_continues then
    perform clinical.write_audit(
      p_table_name => 'shell_files', p_record_id => v_file.id::text, p_action => 'UPDATE',
      p_new_values => jsonb_build_object('job_id', v_id, 'old_job_id', v_job.id), p_reason => 'job taken over',
      p_patient_id => v_file.patient_id, p_job_id => v_id
    );
  end if;
  return v_is_running;
end;
$$;
comment on function clinical.import_job(jsonb, boolean) is 'Creates a job from an older row with its remaining attempts, or the rest of a file''s pipeline from it on; returns whether it runs.';

create or replace function clinical.import_ends(p_table regclass)
returns bigint
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_count bigint := 0::bigint;
  v_file uuid;
  v_old jsonb;
  v_patient uuid;
begin
  -- Ended jobs are not imported, but only they show that a file is complete.
  for v_file, v_old in
    execute format(
      'select distinct on (f.id) f.id, r.job '
      'from clinical.shell_files as f '
      'join (select to_jsonb(t) as job from %s as t) as r on clinical.as_uuid(p_text => r.job -> %L ->> %L) = f.id '
      'where f.job_id is null and f.completed_at is null and f.processing_error is null and r.job ->> %L in (%L, %L, %L) '
      'order by f.id, clinical.stages_left(p_job_type => r.job ->> %L), r.job ->> %L desc',
      p_table, 'job_payload', 'shell_file_id', 'status', 'completed', 'failed', 'cancelled', 'job_type', 'created_at'
    )
  loop
    update clinical.shell_files as f
    set
      completed_at = case
        when v_old ->> 'status' = 'completed' then coalesce((v_old ->> 'completed_at')::timestamptz, trunkline.clock())
      end,
      processing_error = case
        when v_old ->> 'status' <> 'completed'
          then jsonb_build_object('legacy_status', v_old ->> 'status', 'old_job_id', v_old ->> 'id')
      end,
      updated_at = trunkline.clock()
    where f.id = v_file
    returning f.patient_id into v_patient;
    perform clinical.write_audit(
      p_table_name => 'shell_files', p_record_id => v_file::text, p_action => 'UPDATE',
      p_new_values => jsonb_build_object('old_job_id', v_old -> 'id', 'status', v_old -> 'status'), p_reason => 'end taken over',
      p_patient_id => v_patient
    );
    v_count := v_count + 1;
  end loop;
  return v_count;
end;
$$;
comment on function clinical.import_ends(regclass) is 'Records at imported files without an open job how their last job ended in the older table. Returns how many.';

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
comment on function clinical.take_over(text, text) is 'Imports errors, files or jobs of an older table, with the rights of the owner of that table and of this profile; returns what it changed.';

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
comment on function clinical.record_take_over(text, text, boolean, jsonb) is 'Records the result of an import, also of a dry run or a refusal.';

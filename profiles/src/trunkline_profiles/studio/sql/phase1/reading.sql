-- Reading: progress derived from the steps of the order, and the three views with the source's names.
-- requires: orders, catalogue, routing
-- source: 2.2, 2.6, 2.7

create or replace function studio.read_legacy_job(p_job uuid)
returns jsonb
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_object('id', j.id, 'type', j.type, 'status', j.status, 'progress', j.progress, 'artifacts', j.artifacts)
  from studio.legacy_jobs as j
  where j.id = p_job
    and (select r.dual_read from studio.routing as r)
    and ((select trunkline.tenant_scope() is null) or j.user_id = (select trunkline.tenant_scope()))
$$;
comment on function studio.read_legacy_job(uuid) is 'Returns a job of the older system while dual read is on; null if there is none, or none that the caller may see.';

create or replace function studio.percent(p_total integer, p_text integer, p_pdf integer, p_audio integer)
returns integer
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select floor(10 + (40 * p_text + 20 * p_pdf + 25 * p_audio)::numeric / p_total)::integer
$$;
comment on function studio.percent(integer, integer, integer, integer) is 'Returns the percentage after the base data is stored: 10 + 40 t + 20 p + 25 a for the complete parts of text, PDF and audio, rounded down.';

create or replace function studio.has_base_data(p_job uuid)
returns boolean
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  -- The recorded result, because attempts end: what a running text reports is gone when it fails, is lost or is cancelled.
  select exists (
    select
    from trunkline.once_steps as o
    where o.workflow_id = p_job and o.name = 'base_data' and o.recorded_at is not null
  )
$$;
comment on function studio.has_base_data(uuid) is 'Returns whether the charts of both people are stored.';

create or replace function studio.was_claimed(p_job uuid)
returns boolean
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select from trunkline.workflow_jobs(p_workflow => p_job, p_limit => 1000) as j where j.attempt > 0
  )
$$;
comment on function studio.was_claimed(uuid) is 'Returns whether a worker has claimed any task of a job.';

create or replace function studio.finalizing_percent(p_job uuid)
returns integer
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  -- Whatever its state: attempts and recorded steps stay when the task fails, dies or is cancelled.
  select coalesce(max(case
    when j.attempt = 0 then 95
    else least(
      99,
      96 + (select count(*) from trunkline.job_steps(p_job => j.job_id) as s where s.kind = 'step' and s.state = 'recorded')
    )
  end), 95)::integer
  from trunkline.workflow_jobs(p_workflow => p_job, p_step => 'finalize') as j
$$;
comment on function studio.finalizing_percent(uuid) is 'Returns 95 until the task that combines the documents starts, then 96, and one more for each of its recorded steps.';

-- Every fact that it reads only grows, so that neither percent nor phase goes back: completed tasks, the recorded charts,
-- attempts, and recorded steps. It needs no stored mark. The mark of trunkline.workflow_progress would not do: it counts
-- parts of running tasks, and 10 % from the first claim on.
create or replace function studio.job_progress(p_job uuid)
returns jsonb
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  c_verbs constant jsonb := '{"text": "Writing", "pdf": "Setting", "audio": "Recording"}';
  v_counts record;
  v_document integer;
  v_message text;
  v_percent integer;
  v_phase text;
  v_state text;
  v_type text;
begin
  select w.state, w.name into v_state, v_type from trunkline.workflows as w where w.workflow_id = p_job;
  if not found then
    return null;
  end if;
  select
    count(*) / 3 as total,
    count(*) filter (where s.phase = 'text' and s.state = 'completed') as text,
    count(*) filter (where s.phase = 'pdf' and s.state = 'completed') as pdf,
    count(*) filter (where s.phase = 'audio' and s.state = 'completed') as audio,
    bool_and(s.state = 'completed') filter (where s.phase <> 'finalizing') as is_final,
    -- In the order of the phases. A task that ended with its job stays unfinished; one whose text failed does not.
    (
      array_agg(s.phase order by s.place % 3) filter (
        where s.phase <> 'finalizing' and (s.state in ('blocked', 'open') or s.state = 'cancelled' and s.reason = 'workflow')
      )
    )[1] as phase,
    (
      select count(*)
      from (
        select from trunkline.workflow_steps as d
        where d.workflow_id = p_job and d.phase <> 'finalizing' and d.state = 'completed'
        group by d.place / 3
        having count(*) = 3
      ) as c
    ) as documents
  into v_counts
  from trunkline.workflow_steps as s
  where s.workflow_id = p_job;
  v_phase := case
    when v_state = 'completed' then 'complete'
    when v_state = 'queued' then 'queued'
    when v_counts.is_final then 'finalizing'
    when v_counts.text > 0 or studio.has_base_data(p_job => p_job) then coalesce(v_counts.phase, 'audio')
    when v_state = 'cancelled' and not studio.was_claimed(p_job => p_job) then 'queued'
    else 'calculating'
  end;
  v_percent := case v_phase
    when 'complete' then 100
    when 'queued' then 0
    when 'calculating' then 5
    when 'finalizing' then studio.finalizing_percent(p_job => p_job)
    else studio.percent(
      p_total => v_counts.total::integer, p_text => v_counts.text::integer, p_pdf => v_counts.pdf::integer,
      p_audio => v_counts.audio::integer
    )
  end;
  -- The document in work; while nothing runs, the next one. The state keeps the search out of the finished jobs.
  v_document := 1 + coalesce(
    (
      select min(j.workflow_step)
      from trunkline.jobs as j
      where j.workflow_id = p_job and j.state = 'running' and j.task = v_phase || '_generation'
    ),
    (
      select min(s.place)
      from trunkline.workflow_steps as s
      where s.workflow_id = p_job and s.phase = v_phase and s.state = 'open'
    )
  ) / 3;
  v_message := case
    when v_state = 'cancelled' then 'Cancelled'
    when v_state = 'failed' then 'Failed: ' || coalesce(
      (select string_agg(f.title, ', ' order by f.document) from studio.failed_documents(p_job => p_job) as f),
      'the documents could not be combined'
    )
    when v_phase = 'queued' then 'Waiting for a worker'
    when v_phase = 'calculating' then 'Computing the charts of both people'
    when v_phase = 'finalizing' then 'Combining all documents'
    when v_phase = 'complete' then format('%s documents are ready', v_counts.total)
    else concat_ws(
      ' ', c_verbs ->> v_phase,
      (select d.title from studio.documents as d where d.type = v_type and d.document = coalesce(v_document, 1))
    )
  end;
  return jsonb_build_object(
    'percent', v_percent, 'phase', v_phase, 'docsComplete', v_counts.documents, 'docsTotal', v_counts.total, 'message', v_message
  );
end;
$$;
comment on function studio.job_progress(uuid) is 'Returns the progress of a job, computed from the states of its tasks. Nothing else writes it; null if the caller may not see the job.';

create or replace function studio.failed_documents(p_job uuid)
returns table (document integer, title text)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
  select d.document, d.title
  from trunkline.workflows as w
  join studio.documents as d on d.type = w.name
  where w.workflow_id = p_job
    and exists (
      select
      from trunkline.workflow_steps as s
      where s.workflow_id = p_job and s.phase <> 'finalizing' and s.place / 3 + 1 = d.document and s.state = 'failed'
    )
  order by d.document
$$;
comment on function studio.failed_documents(uuid) is 'Returns the documents of a job of which a task has failed for good.';

create or replace function studio.task_status(p_state text)
returns text
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select case p_state
    when 'ready' then 'pending' when 'scheduled' then 'pending' when 'running' then 'claimed' when 'completed' then 'complete'
    when 'dead' then 'failed' else p_state
  end
$$;
comment on function studio.task_status(text) is 'Returns the status of a task for the state of its job; blocked means that its text does not exist yet.';

create or replace view studio.jobs with (security_barrier = true) as
select
  w.workflow_id as id, w.tenant as user_id, w.name as type, w.params, studio.job_status(p_state => w.state) as status,
  studio.job_progress(p_job => w.workflow_id) as progress, w.created_at, w.ended_at, w.reason
from trunkline.workflows as w
where w.name = any(array(select t.type from studio.job_types as t));
comment on view studio.jobs is 'Jobs with their progress; users see their own.';

-- By the tasks of one job after another, because finished tasks have no index by job. A filter by job_id reads one job.
create or replace view studio.job_tasks with (security_barrier = true) as
select
  j.job_id as id, w.workflow_id as job_id, j.task as task_type, j.workflow_step as sequence,
  (select b.payload from trunkline.jobs as b where b.job_id = j.job_id) as input,
  (select b.result from trunkline.jobs as b where b.job_id = j.job_id) as output,
  studio.task_status(p_state => j.state) as status,
  case when j.state = 'running' then j.worker end as worker_id,
  case when j.state = 'running' then j.attempt end as lease_token,
  case when j.state = 'running' then j.claimed_at end as claimed_at,
  case when j.state = 'running' then j.heartbeat_at end as heartbeat_at,
  case when j.state = 'running' then j.failures + 1 else j.failures end as attempts,
  j.max_attempts,
  coalesce(j.last_error ->> 'message', case when j.state = 'cancelled' then j.reason end) as error,
  j.created_at, j.run_at, j.finished_at, j.tenant as user_id
from trunkline.workflows as w
cross join lateral trunkline.workflow_jobs(p_workflow => w.workflow_id, p_limit => 1000) as j
where w.name = any(array(select t.type from studio.job_types as t))
  and j.task = any(array(select t.task_type from studio.task_types as t where t.place is not null));
comment on view studio.job_tasks is 'Tasks of jobs; sequence is 3 times the document for text, one more for PDF and two more for audio.';

-- Users see the public part of their tasks: no input, no worker and no errors of the service.
create or replace function studio.public_tasks(p_job uuid)
returns table (id uuid, task_type text, sequence integer, status text, created_at timestamptz, finished_at timestamptz)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
  select j.job_id, j.task, j.workflow_step, studio.task_status(p_state => j.state), j.created_at, j.finished_at
  from trunkline.workflow_jobs(p_workflow => p_job, p_limit => 1000) as j
  where j.task = any(array(select t.task_type from studio.task_types as t where t.place is not null))
$$;
comment on function studio.public_tasks(uuid) is 'Returns the tasks of a job with the fields that its user may see. A job that the caller may not see is refused as unknown.';

create or replace view studio.my_tasks with (security_barrier = true) as
select t.id, w.workflow_id as job_id, t.task_type, t.sequence, t.status, t.created_at, t.finished_at
from trunkline.workflows as w
cross join lateral studio.public_tasks(p_job => w.workflow_id) as t
where w.name = any(array(select o.type from studio.job_types as o));
comment on view studio.my_tasks is 'Tasks of the caller''s jobs with the fields that users may see.';

create or replace view studio.job_artifacts with (security_barrier = true) as
select
  a.artifact_id as id, a.workflow_id as job_id, a.job_id as task_id, a.kind as artifact_type, a.name, a.storage_path,
  a.bytes as file_size_bytes, a.duration as duration_seconds, a.sha256, a.content_type, a.published_at as created_at, a.expires_at,
  a.tenant as user_id
from trunkline.artifacts as a
where a.deleted_at is null
  and a.workflow_id is not null
  and a.task = any(array(select t.task_type from studio.task_types as t));
comment on view studio.job_artifacts is 'Files of complete tasks. Links are signed when they are read, and stored nowhere.';

create or replace function studio.read_job(p_job_id uuid)
returns jsonb
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
  select coalesce((select jsonb_build_object(
    'id', j.id,
    'type', j.type,
    'status', j.status,
    'progress', j.progress,
    'artifacts', coalesce((
      select jsonb_agg(
        jsonb_strip_nulls(jsonb_build_object(
          'id', a.id, 'type', a.artifact_type, 'name', a.name, 'path', a.storage_path, 'contentType', a.content_type,
          'bytes', a.file_size_bytes, 'duration', a.duration_seconds
        ))
        order by a.created_at, a.name
      )
      from studio.job_artifacts as a
      where a.job_id = j.id
    ), '[]')
  ) || case
    when j.status = 'failed' then jsonb_build_object('failedDocuments', coalesce(
      (select jsonb_agg(f.title order by f.document) from studio.failed_documents(p_job => j.id) as f), '[]'
    ))
    else '{}'
  end
  from studio.jobs as j
  where j.id = p_job_id), studio.read_legacy_job(p_job => p_job_id))
$$;
comment on function studio.read_job(uuid) is 'Returns a job with its progress and the files that exist so far; null if there is none, or none that the caller may see.';

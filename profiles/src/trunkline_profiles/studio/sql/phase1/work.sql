-- Functions for workers in any language: claim, heartbeat, complete, fail, reclaim; each call is fenced by worker and attempt.
-- requires: base, catalogue, reading
-- source: 2.3, 2.4

create table if not exists studio.polls (
  task_type text primary key references studio.task_types (task_type),
  polled_at timestamptz not null
);
comment on table studio.polls is 'When a worker last asked for tasks of a type through claim_tasks, to within half a minute: -infinity if none ever did.';
alter table studio.polls enable row level security;
alter table studio.polls force row level security;
drop policy if exists all_rows on studio.polls;
create policy all_rows on studio.polls using (true) with check (true);

insert into studio.polls (task_type, polled_at)
select t.task_type, '-infinity'
from studio.task_types as t
on conflict do nothing;

create or replace function studio.note_poll(p_types text[])
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  -- Rows that another claim has locked are skipped: claims do not wait for each other.
  update studio.polls as p
  set polled_at = trunkline.clock()
  where p.task_type in (
    select o.task_type
    from studio.polls as o
    where o.task_type = any(p_types) and o.polled_at <= (select trunkline.clock() - interval '30 seconds')
    for update of o skip locked
  )
$$;
comment on function studio.note_poll(text[]) is 'Records that a worker asked for tasks of these types, at most twice a minute.';

create or replace function studio.claim_tasks(
  p_worker_id text,
  p_max_tasks integer default 5,
  p_task_types text[] default null
)
returns table (
  id uuid, job_id uuid, task_type text, sequence integer, input jsonb, attempts integer, max_attempts integer, attempt integer,
  claimed_at timestamptz, lease_expires_at timestamptz, hard_deadline timestamptz
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_types text[] := coalesce(p_task_types, array(select t.task_type from studio.task_types as t where t.place is not null));
  v_unknown text;
begin
  select u.type into v_unknown
  from unnest(v_types) as u (type)
  where u.type is null or u.type not in (select t.task_type from studio.task_types as t)
  limit 1;
  if found then
    perform studio.refuse(
      p_code => 'unknown_task_type', p_message => format('there is no task type %s', coalesce(quote_literal(v_unknown), 'null')),
      p_detail => jsonb_build_object('types', (select jsonb_agg(t.task_type order by t.task_type) from studio.task_types as t))
    );
  end if;
  perform studio.note_poll(p_types => v_types);
  return query
  select
    c.job_id, c.workflow_id, c.task, s.sequence,
    studio.resolved_input(p_worker => p_worker_id, p_job => c.job_id, p_attempt => c.attempt, p_input => c.payload),
    c.failures + 1, c.max_attempts, c.attempt, c.claimed_at, c.lease_expires_at, c.hard_deadline
  from trunkline.claim(
    p_worker => p_worker_id,
    p_queues => array(select distinct t.queue from studio.task_types as t where t.task_type = any(v_types) order by t.queue),
    p_limit => least(greatest(coalesce(p_max_tasks, 5), 1), 50),
    p_tasks => v_types
  ) as c
  join studio.task_types as t on t.task_type = c.task
  -- Null for the internal task.
  cross join lateral (select 3 * ((c.payload ->> 'document')::integer - 1) + t.place as sequence) as s
  where c.job_id is not null
  order by c.created_at, s.sequence;
end;
$$;
comment on function studio.claim_tasks(text, integer, text[]) is 'Claims up to p_max_tasks tasks (1 to 50) of these types, or of the three of documents, oldest job first; attempt is the token of the lease.';

create or replace function studio.resolved_input(p_worker text, p_job uuid, p_attempt integer, p_input jsonb)
returns jsonb
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_object_agg(f.name, case
    when jsonb_typeof(f.value) = 'object' and f.value ? '$result' then (
      select r.result
      from trunkline.dependency_results(
        p_worker => p_worker, p_job => p_job, p_attempt => p_attempt, p_step => f.value ->> '$result', p_limit => 1
      ) as r
    )
    else f.value
  end), '{}')
  from jsonb_each(p_input) as f (name, value)
$$;
comment on function studio.resolved_input(text, uuid, integer, jsonb) is 'Returns the input of a claimed task with the results that it refers to.';

create or replace function studio.running_attempt(p_task uuid, p_worker text, p_attempt integer)
returns integer
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  -- Without an attempt, only the worker's name is the fence.
  select m.attempt
  from trunkline.stale_monitor as m
  join studio.task_types as t on t.task_type = m.task
  where m.job_id = p_task and m.worker = p_worker and m.attempt = coalesce(p_attempt, m.attempt)
$$;
comment on function studio.running_attempt(uuid, text, integer) is 'Returns the attempt of a task that this worker runs; null if it runs none, or not this one.';

create or replace function studio.heartbeat_task(p_task_id uuid, p_worker_id text, p_attempt integer default null)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_attempt integer := studio.running_attempt(p_task => p_task_id, p_worker => p_worker_id, p_attempt => p_attempt);
  v_verdict text;
begin
  if v_attempt is null then
    return false;
  end if;
  select v.verdict into v_verdict
  from trunkline.heartbeat(p_worker => p_worker_id, p_jobs => array[p_task_id], p_attempts => array[v_attempt]) as v;
  if v_verdict = 'cancel' then
    -- The worker stops on false. Cancel here, because otherwise the task would only end with its lease.
    perform trunkline.acknowledge_cancel(p_worker => p_worker_id, p_jobs => array[p_task_id], p_attempts => array[v_attempt]);
  end if;
  return coalesce(v_verdict = 'ok', false);
end;
$$;
comment on function studio.heartbeat_task(uuid, text, integer) is 'Extends the lease of a task that this worker runs; false if it is not, or if the job was cancelled, which ends it: stop and discard.';

create or replace function studio.prepare_artifact(
  p_task_id uuid,
  p_worker_id text,
  p_artifact_type text,
  p_name text,
  p_attempt integer default null
)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_attempt integer := studio.running_attempt(p_task => p_task_id, p_worker => p_worker_id, p_attempt => p_attempt);
  v_type text := (select t.content_type from studio.artifact_types as t where t.artifact_type = p_artifact_type);
begin
  if v_type is null then
    perform studio.refuse(
      p_code => 'invalid_artifact', p_message => format('there is no artifact type %s', quote_nullable(p_artifact_type)),
      p_detail => jsonb_build_object('types', (select jsonb_agg(t.artifact_type order by t.artifact_type) from studio.artifact_types as t))
    );
  end if;
  if v_attempt is null then
    perform studio.refuse(
      p_code => 'stale_task', p_message => format('task %s is not run by %s', p_task_id, p_worker_id),
      p_detail => jsonb_build_object('task_id', p_task_id, 'worker_id', p_worker_id, 'attempt', p_attempt)
    );
  end if;
  return (trunkline.begin_artifact(
    p_worker => p_worker_id, p_job => p_task_id, p_attempt => v_attempt, p_name => p_name, p_kind => p_artifact_type,
    p_content_type => v_type
  )).path;
end;
$$;
comment on function studio.prepare_artifact(uuid, text, text, text, integer) is 'Returns where a claimed task uploads a file. The file is published when complete_task names it.';

create or replace function studio.complete_task(
  p_task_id uuid,
  p_worker_id text,
  p_output jsonb,
  p_attempt integer default null,
  p_artifacts jsonb default null
)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_attempt integer := studio.running_attempt(p_task => p_task_id, p_worker => p_worker_id, p_attempt => p_attempt);
  v_file record;
  v_verdict text;
begin
  perform studio.require_small(p_value => p_output, p_what => 'output');
  if v_attempt is null then
    -- The answer to an earlier call of the same worker may have been lost.
    return exists (
      select
      from trunkline.job(p_job => p_task_id) as j
      join studio.task_types as t on t.task_type = j.task
      where j.state = 'completed' and j.worker = p_worker_id and j.attempt = coalesce(p_attempt, j.attempt)
    );
  end if;
  if jsonb_typeof(p_artifacts) not in ('array', 'null') then
    perform studio.refuse(
      p_code => 'invalid_artifact', p_message => 'p_artifacts is not a list', p_detail => jsonb_build_object('task_id', p_task_id)
    );
  end if;
  begin
    for v_file in
      select a.path, a.bytes, a.sha256, a.duration
      from jsonb_to_recordset(nullif(p_artifacts, 'null')) as a (path text, bytes bigint, sha256 text, duration double precision)
    loop
      perform trunkline.stage_artifact(
        p_worker => p_worker_id, p_job => p_task_id, p_attempt => v_attempt, p_path => v_file.path, p_bytes => v_file.bytes,
        p_sha256 => v_file.sha256, p_duration => v_file.duration
      );
    end loop;
  exception
    when data_exception then
      perform studio.refuse(
        p_code => 'invalid_artifact', p_message => format('p_artifacts cannot be read: %s', sqlerrm),
        p_detail => jsonb_build_object('task_id', p_task_id)
      );
  end;
  select v.verdict into v_verdict
  from trunkline.complete(
    p_worker => p_worker_id, p_jobs => array[p_task_id], p_attempts => array[v_attempt], p_results => array[p_output]
  ) as v;
  return coalesce(v_verdict in ('ok', 'already'), false);
end;
$$;
comment on function studio.complete_task(uuid, text, jsonb, integer, jsonb) is 'Completes a task with its metadata and publishes the files that it names, in one transaction. A repeated call of the owner returns true and changes nothing.';

create or replace function studio.fail_task(p_task_id uuid, p_worker_id text, p_error text, p_attempt integer default null)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_attempt integer := studio.running_attempt(p_task => p_task_id, p_worker => p_worker_id, p_attempt => p_attempt);
begin
  if v_attempt is null then
    return null;
  end if;
  perform trunkline.fail(
    p_worker => p_worker_id, p_jobs => array[p_task_id], p_attempts => array[v_attempt],
    p_errors => array[jsonb_build_object('type', 'TaskFailed', 'message', coalesce(p_error, 'no reason was given'))],
    p_retryable => array[true]
  );
  return (select studio.task_status(p_state => j.state) from trunkline.job(p_job => p_task_id) as j);
end;
$$;
comment on function studio.fail_task(uuid, text, text, integer) is 'Ends an attempt as failed; returns pending, or failed after the third. Null for a worker that does not run the task.';

create or replace function studio.reclaim_stale_tasks()
returns integer
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
  select count(*)::integer
  from trunkline.reclaim() as r
  join studio.task_types as t on t.task_type = r.task
$$;
comment on function studio.reclaim_stale_tasks() is 'Takes back tasks without a heartbeat for 180 seconds, or past their time limit; returns how many. Any number of callers may run it at once.';

create or replace function studio.order_files(p_task uuid, p_attempt integer, p_worker text)
returns table (document integer, artifact_type text, name text, path text, sha256 text, bytes bigint, duration double precision)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_job uuid;
begin
  if p_attempt is not null and studio.running_attempt(p_task => p_task, p_worker => p_worker, p_attempt => p_attempt) is not null then
    select j.workflow_id into v_job from trunkline.job(p_job => p_task) as j where j.task = 'finalize_job';
  end if;
  if v_job is null then
    perform studio.refuse(
      p_code => 'stale_task', p_message => format('task %s is not run by %s', p_task, p_worker),
      p_detail => jsonb_build_object('task_id', p_task, 'worker_id', p_worker, 'attempt', p_attempt)
    );
  end if;
  return query
  select
    substring(a.name from '\d+')::integer, a.artifact_type, a.name, a.storage_path, a.sha256::text, a.file_size_bytes, a.duration_seconds
  from studio.job_artifacts as a
  where a.job_id = v_job
  order by 1, 2, 3;
end;
$$;
comment on function studio.order_files(uuid, integer, text) is 'Returns the files of the documents of a job to the attempt that combines them.';

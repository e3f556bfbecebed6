-- Functions for workers: claim, heartbeat, reschedule, complete, fail; each call is fenced by worker and attempt.
-- requires: jobs, pipeline
-- source: 3, 8

create or replace function clinical.claim_next_job_v3(worker_id text, job_types text[] default null)
returns table (job_id uuid, job_type text, job_payload jsonb, retry_count integer, attempt integer)
language sql
volatile
security definer
rows 1
set search_path = pg_catalog, pg_temp
as $$
  select
    c.job_id, c.task,
    case
      when c.workflow_id is null then c.payload
      else clinical.stage_payload(p_payload => c.payload, p_workflow => c.workflow_id, p_stage => c.task)
    end,
    least(c.failures, c.max_attempts - 1) + coalesce(i.retry_count, 0), c.attempt
  from trunkline.claim(
    p_worker => claim_next_job_v3.worker_id, p_queues => clinical.queues(), p_limit => 1, p_tasks => claim_next_job_v3.job_types
  ) as c
  left join clinical.imported_jobs as i on i.job_id = c.job_id
  where c.job_id is not null
$$;
comment on function clinical.claim_next_job_v3(text, text[]) is 'Claims the next job of these types, or of any, at most one; attempt is the token of its lease.';

create or replace function clinical.running_attempt(p_job uuid, p_worker text, p_attempt integer)
returns integer
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  -- Without an attempt, only the worker's name is the fence.
  select m.attempt
  from trunkline.stale_monitor as m
  join clinical.job_types as t on t.job_type = m.task
  where m.job_id = p_job and m.worker = p_worker and m.attempt = coalesce(p_attempt, m.attempt)
$$;
comment on function clinical.running_attempt(uuid, text, integer) is 'Returns the attempt of a job that this worker runs; null if it runs none, or not this one.';

create or replace function clinical.update_job_heartbeat(p_job_id uuid, p_worker_id text, p_attempt integer default null)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_attempt integer := clinical.running_attempt(p_job => p_job_id, p_worker => p_worker_id, p_attempt => p_attempt);
  v_ok boolean := false;
begin
  if v_attempt is not null then
    select v.verdict = 'ok' into v_ok
    from trunkline.heartbeat(p_worker => p_worker_id, p_jobs => array[p_job_id], p_attempts => array[v_attempt]) as v;
    if v_ok is not true and exists (
      select from trunkline.jobs as j where j.job_id = p_job_id and j.state = 'running' and j.cancel_requested_at is not null
    ) then
      -- The worker stops on false. Cancel here, because otherwise the job would only end with its lease.
      perform trunkline.acknowledge_cancel(p_worker => p_worker_id, p_jobs => array[p_job_id], p_attempts => array[v_attempt]);
    end if;
  end if;
  return coalesce(v_ok, false);
end;
$$;
comment on function clinical.update_job_heartbeat(uuid, text, integer) is 'Extends the lease of a job that this worker runs; false if the job is not running, belongs to another worker or was cancelled, which ends it: stop and discard.';

create or replace function clinical.reschedule_job(
  p_job_id uuid,
  p_delay_seconds integer,
  p_reason text,
  p_add_jitter boolean default true,
  p_worker_id text default null,
  p_attempt integer default null
)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_attempt integer := clinical.running_attempt(p_job => p_job_id, p_worker => p_worker_id, p_attempt => p_attempt);
  v_ok boolean := false;
begin
  if p_delay_seconds < 0 or v_attempt is not null then
    -- Called even without an attempt, so that a negative delay is refused instead of returning false.
    select v.verdict = 'ok' into v_ok
    from trunkline.snooze(
      p_worker => coalesce(p_worker_id, 'unknown'), p_jobs => array[p_job_id], p_attempts => array[coalesce(v_attempt, 0)],
      p_delays => array[make_interval(secs => p_delay_seconds)], p_reason => p_reason, p_jitter => p_add_jitter
    ) as v;
  end if;
  return coalesce(v_ok, false);
end;
$$;
comment on function clinical.reschedule_job(uuid, integer, text, boolean, text, integer) is 'Defers a running job for the worker that runs it, without counting a retry; false for any other caller and in any other status.';

create or replace function clinical.settle_tokens(p_job uuid, p_attempt integer, p_result jsonb)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  -- If tokens_used is absent, the estimate stays charged. Zero means zero.
  if jsonb_typeof(p_result -> 'tokens_used') = 'number' and (p_result ->> 'tokens_used')::numeric >= 0 then
    perform trunkline.settle_job(
      p_job => p_job, p_attempt => p_attempt,
      p_actual => jsonb_build_object('tokens', (p_result ->> 'tokens_used')::numeric::bigint)
    );
  end if;
end;
$$;
comment on function clinical.settle_tokens(uuid, integer, jsonb) is 'Adjusts the charge of the claim to the tokens_used of a result or an error, if it has them.';

-- The earlier version enqueued the next stage.
drop function if exists clinical.advance(uuid, jsonb);

create or replace function clinical.finish_stage(p_job uuid, p_attempt integer, p_worker text, p_result jsonb default null)
returns uuid
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if clinical.running_attempt(p_job => p_job, p_worker => p_worker, p_attempt => p_attempt) is null or p_attempt is null then
    perform clinical.refuse(
      p_code => 'stale_stage', p_message => format('attempt %s of job %s is not run by %s', p_attempt, p_job, p_worker),
      p_detail => jsonb_build_object('job_id', p_job, 'attempt', p_attempt, 'worker', p_worker)
    );
  end if;
  perform clinical.settle_tokens(p_job => p_job, p_attempt => p_attempt, p_result => p_result);
  return clinical.end_stage(p_job => p_job);
end;
$$;
comment on function clinical.finish_stage(uuid, integer, text, jsonb) is 'Settles the charge of a stage and, after the last one, records the end at the file, in the transaction in which the engine completes the job; returns the job of the next stage, null after the last.';

create or replace function clinical.complete_job(
  p_job_id uuid,
  p_worker_id text,
  p_job_result jsonb default null,
  p_attempt integer default null
)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_attempt integer := clinical.running_attempt(p_job => p_job_id, p_worker => p_worker_id, p_attempt => p_attempt);
  v_ok boolean;
begin
  if v_attempt is null then
    return false;
  end if;
  -- Before the end, because a charge can be adjusted only while the job runs.
  perform clinical.settle_tokens(p_job => p_job_id, p_attempt => v_attempt, p_result => p_job_result);
  select v.verdict = 'ok' into v_ok
  from trunkline.complete(
    p_worker => p_worker_id, p_jobs => array[p_job_id], p_attempts => array[v_attempt], p_results => array[p_job_result]
  ) as v;
  if v_ok then
    perform clinical.end_stage(p_job => p_job_id);
  end if;
  return coalesce(v_ok, false);
end;
$$;
comment on function clinical.complete_job(uuid, text, jsonb, integer) is 'Completes a job with its result, which opens the next stage; true only for the call that completed it.';

create or replace function clinical.fail_job(
  p_job_id uuid,
  p_worker_id text,
  p_attempt integer default null,
  p_error jsonb default null,
  p_retryable boolean default true
)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_attempt integer := clinical.running_attempt(p_job => p_job_id, p_worker => p_worker_id, p_attempt => p_attempt);
  v_verdict record;
begin
  if v_attempt is null then
    return false;
  end if;
  perform clinical.settle_tokens(p_job => p_job_id, p_attempt => v_attempt, p_result => p_error);
  select v.verdict, v.state into v_verdict
  from trunkline.fail(
    p_worker => p_worker_id, p_jobs => array[p_job_id], p_attempts => array[v_attempt],
    p_errors => array[p_error], p_retryable => array[coalesce(p_retryable, true)]
  ) as v;
  if v_verdict.verdict = 'ok' and v_verdict.state = 'dead' then
    perform clinical.note_stopped_file(p_job => p_job_id);
  end if;
  return coalesce(v_verdict.verdict = 'ok', false);
end;
$$;
comment on function clinical.fail_job(uuid, text, integer, jsonb, boolean) is 'Ends an attempt as failed: retried after a back-off with jitter, or a dead letter if it is not retryable or out of retries.';

-- The validation tests as functions of one transaction that is always rolled back; never a migration.
-- They create jobs with an old lock: the claim runs while the clock of this transaction is in the past.
-- Other sessions see neither that clock nor the jobs and their queue.

set local role trunkline_owner;

do $clock$
begin
  execute replace(
    pg_get_functiondef('trunkline.clock()'::regprocedure), 'trunkline.clock()', 'executor.validation_clock()'
  );
end
$clock$;
create or replace function trunkline.clock() returns timestamptz language sql volatile
as $$
  select executor.validation_clock() + coalesce(nullif(current_setting('trunkline_validation.shift', true), ''), '0')::interval
$$;

create function executor.validation_at(p_shift text) returns void language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform set_config('trunkline_validation.shift', p_shift, true);
end;
$$;

create function executor.validation_claim(p_worker text) returns void language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform trunkline.claim(p_worker => p_worker, p_queues => array['executor-validation']);
end;
$$;

create function executor.validation_enqueue(p_name text, p_type text default 'run_tsa') returns uuid language sql volatile
set search_path = pg_catalog, pg_temp
as $$
  select (trunkline.enqueue(
    p_task => p_type, p_queue => 'executor-validation',
    p_unique_key => p_name || '-' || extract(epoch from clock_timestamp())::bigint
  )).job_id
$$;

-- Reclaim starts where its last run ended, which is after a lock this old. Every twentieth run scans
-- from the start.
create function executor.validation_reclaim() returns void language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform executor.validation_at(p_shift => '0');
  for v_run in 1..20 loop
    perform executor.reclaim_stale_jobs();
  end loop;
end;
$$;

create function executor.validation_tests()
returns table (requirement text, test text, expected text, outcome text, passed boolean)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_job uuid;
  v_attempt integer;
  v_row record;
begin
  requirement := 'RC-43';
  test := 'dead worker: run_tsa, locked 35 min ago, attempts 1';
  expected := 'queued, attempts 2, RECLAIMED_TTL: Exceeded TTL (30 min)';
  perform executor.validation_at(p_shift => '-35 minutes');
  v_job := executor.validation_enqueue(p_name => 'test-ttl-reclaim');
  perform executor.validation_claim(p_worker => 'test-worker-dead');
  perform executor.validation_reclaim();
  select * into v_row from executor.executor_jobs as j where j.id = v_job;
  outcome := format('%s, attempts %s, %s', v_row.status, v_row.attempts, v_row.last_error);
  passed := v_row.status = 'queued' and v_row.attempts = 2
    and v_row.last_error like '%RECLAIMED_TTL: Exceeded TTL (30 min)%' and v_row.locked_by is null;
  return next;

  requirement := 'RC-44';
  test := 'running run_tsa without a sign of life for 60 min';
  expected := '0';
  select count(*) into outcome
  from trunkline.stale_monitor as m
  where m.task = 'run_tsa' and m.liveness_age > interval '60 minutes';
  passed := outcome = '0';
  return next;

  requirement := 'RC-45';
  test := 'exhausted: run_tsa, locked 35 min ago, attempts 10';
  expected := 'dead, attempts 10, Max attempts reached';
  perform executor.validation_at(p_shift => '-35 minutes');
  v_job := executor.validation_enqueue(p_name => 'test-max-attempts');
  for v_failure in 1..9 loop
    select c.attempt into v_attempt
    from trunkline.claim(p_worker => 'test-worker-exhausted', p_queues => array['executor-validation']) as c;
    perform trunkline.fail(
      p_worker => 'test-worker-exhausted', p_jobs => array[v_job], p_attempts => array[v_attempt],
      p_errors => array['{"type": "test"}'::jsonb], p_delays => array[interval '0']
    );
  end loop;
  perform executor.validation_claim(p_worker => 'test-worker-exhausted');
  perform executor.validation_reclaim();
  select * into v_row from executor.executor_jobs as j where j.id = v_job;
  outcome := format('%s, attempts %s, %s', v_row.status, v_row.attempts, v_row.last_error);
  passed := v_row.status = 'dead' and v_row.attempts = 10 and v_row.last_error like 'RECLAIMED_TTL:%Max attempts reached%';
  return next;

  requirement := 'RC-47';
  test := 'alive: run_tsa, locked 35 min ago, heartbeat 10 s ago';
  expected := 'running, attempts 1, test-worker-alive';
  perform executor.validation_at(p_shift => '-35 minutes');
  v_job := executor.validation_enqueue(p_name => 'test-heartbeat');
  perform executor.validation_claim(p_worker => 'test-worker-alive');
  perform executor.validation_at(p_shift => '-10 seconds');
  perform trunkline.heartbeat(p_worker => 'test-worker-alive', p_jobs => array[v_job], p_attempts => array[1]);
  perform executor.validation_reclaim();
  select * into v_row from executor.executor_jobs as j where j.id = v_job;
  outcome := format('%s, attempts %s, %s', v_row.status, v_row.attempts, v_row.locked_by);
  passed := outcome = expected;
  return next;

  requirement := 'RC-48';
  test := 'claimed again: run_tsa, locked 1 min ago, heartbeat of the attempt before 3 h ago';
  expected := 'running, attempts 2, test-worker-again';
  perform executor.validation_at(p_shift => '-185 minutes');
  v_job := executor.validation_enqueue(p_name => 'test-old-heartbeat');
  perform executor.validation_claim(p_worker => 'test-worker-again');
  perform executor.validation_at(p_shift => '-180 minutes');
  perform trunkline.heartbeat(p_worker => 'test-worker-again', p_jobs => array[v_job], p_attempts => array[1]);
  perform trunkline.fail(
    p_worker => 'test-worker-again', p_jobs => array[v_job], p_attempts => array[1],
    p_errors => array['{"type": "test"}'::jsonb], p_delays => array[interval '0']
  );
  perform executor.validation_at(p_shift => '-1 minute');
  perform executor.validation_claim(p_worker => 'test-worker-again');
  perform executor.validation_reclaim();
  select * into v_row from executor.executor_jobs as j where j.id = v_job;
  outcome := format('%s, attempts %s, %s', v_row.status, v_row.attempts, v_row.locked_by);
  passed := outcome = expected;
  return next;
end;
$$;

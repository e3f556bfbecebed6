-- What many tests need: jobs in a given state, a look at any job, and refusals as JSON.
-- Definer functions, so that a test can arrange and look without leaving the role it tests.
create schema t;
grant usage on schema t to public;

-- One job wherever it is; all fields null when there is none.
create function t.job(p_job uuid) returns trunkline.job_detail
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select j from trunkline.job(p_job => p_job) as j;
end;

-- A new job of the task, claimed by the worker.
create function t.started(p_task text, p_worker text default 'w1') returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_job uuid;
  v_claimed uuid;
begin
  select e.job_id into v_job from trunkline.enqueue(p_task => p_task, p_priority => 49) as e;
  select c.job_id into v_claimed from trunkline.claim(p_worker => p_worker, p_tasks => array[p_task]) as c;
  if v_claimed is distinct from v_job then
    raise exception 'claimed % instead of %', v_claimed, v_job;
  end if;
  return v_job;
end;
$$;

-- A new job of the task, failed for good.
create function t.dead(p_task text) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_job uuid := t.started(p_task => p_task);
begin
  perform trunkline.fail(
    p_worker => 'w1', p_jobs => array[v_job], p_attempts => array[1],
    p_errors => array['{"message": "no"}'::jsonb], p_retryable => array[false]
  );
  return v_job;
end;
$$;

-- The latest event of a job.
create function t.event(p_job uuid) returns trunkline.events
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select e from trunkline.events as e where e.job_id = p_job order by e.at desc limit 1;
end;

-- Seconds from the latest event of a job to the time the job is due, exactly: both come from one clock read.
create function t.delay(p_job uuid) returns numeric
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select extract(epoch from (e.detail ->> 'run_at')::timestamptz - e.at)
  from trunkline.events as e where e.job_id = p_job order by e.at desc limit 1;
end;

-- What a statement is refused with: its SQLSTATE and JSON detail; null when it is not refused.
create function t.refusal(p_sql text) returns jsonb
language plpgsql volatile
as $$
declare
  v_detail text;
  v_state text;
begin
  execute p_sql;
  return null;
exception
  when others then
    get stacked diagnostics v_detail = pg_exception_detail, v_state = returned_sqlstate;
    return jsonb_build_object('sqlstate', v_state, 'message', sqlerrm)
      || case when v_state like 'TL%' then v_detail::jsonb else '{}'::jsonb end;
end;
$$;

-- The only way from a SQL test to trunkline_internal, as this package is for other tests.
-- Include it after tests/sql/helpers/tools.sql. Definer functions, so that a test can arrange and look without leaving the
-- role it tests.

-- Jobs

-- Jobs that wait or run.
create function t.live() returns setof uuid
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select w.job_id from trunkline_internal.waiting as w union all select r.job_id from trunkline_internal.running as r;
end;

-- Finished jobs, each with the result that its own row has.
create function t.finished() returns table (job_id uuid, result jsonb)
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select f.job_id, f.result from trunkline_internal.finished as f;
end;

-- Payloads and results that are kept apart from their jobs.
create function t.bodies() returns table (job_id uuid, kind text, day date)
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select b.job_id, b.kind, b.day from trunkline_internal.bodies as b;
end;

-- The changes of state that the engine allows; a job that does not exist has the state none.
create function t.transitions() returns table (from_state text, to_state text)
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select j.from_state, j.to_state from trunkline_internal.job_transitions as j;
end;

-- Lets a job of the task mail wait that enqueue would not write: blocked, or with the id of another job.
create function t.let_wait(p_job uuid, p_state text default 'ready', p_payload jsonb default '{}') returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp
begin atomic
  insert into trunkline_internal.waiting (job_id, sequence, run_at, created_at, max_attempts, lane, state, queue, task, payload)
  values (
    p_job, case when p_state = 'ready' then nextval('trunkline_internal.job_sequence') end, now(), now(), 1, 0, p_state, 'default', 'mail', p_payload
  );
end;

-- Gives the waiting job an earlier number, as if a claim of it had been rolled back.
create function t.renumber(p_sequence bigint) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp
begin atomic
  update trunkline_internal.waiting set sequence = p_sequence;
end;

-- Tasks

-- How long a job waits after so many failures.
create function t.backoff(p_failures integer, p_base interval, p_factor double precision, p_cap interval, p_jitter double precision) returns interval
language sql volatile security definer set search_path = pg_catalog, pg_temp
begin atomic
  select trunkline_internal.backoff(p_failures => p_failures, p_base => p_base, p_factor => p_factor, p_cap => p_cap, p_jitter => p_jitter);
end;

-- What changes when the row of a task is written or locked.
create function t.task_versions() returns text[]
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select array_agg(t.task || ' ' || t.xmin || ' ' || t.xmax || ' ' || t.ctid order by t.task) from trunkline_internal.tasks as t;
end;

-- Removes the policies of all tasks.
create function t.remove_tasks() returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp
begin atomic
  delete from trunkline_internal.tasks;
end;

-- Workers

-- The flags of idle workers.
create function t.flags() returns text[]
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select array_agg(s.worker || ' ' || s.queue order by s.worker, s.queue) from trunkline_internal.sleepers as s;
end;

-- What changes when a flag is written again.
create function t.flag_versions() returns text[]
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select array_agg(s.xmin::text order by s.worker, s.queue) from trunkline_internal.sleepers as s;
end;

-- Sets a flag, of a worker that need not be registered.
create function t.set_flag(p_worker text, p_queue text) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp
begin atomic
  insert into trunkline_internal.sleepers (queue, worker) values (p_queue, p_worker);
end;

-- Duties

-- Partitions that the engine has on its list, and whether they exist.
create function t.partitions() returns table (parent text, lower_bound timestamptz, upper_bound timestamptz, there boolean)
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select p.parent, p.lower_bound, p.upper_bound, to_regclass('trunkline_internal.' || p.partition) is not null
  from trunkline_internal.partitions as p;
end;

-- Lets the duty reclaim fail, and then succeed again.
create function t.break_reclaim() returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
begin
  alter function trunkline_internal.move_running(trunkline_internal.move[], timestamptz) rename to move_running_aside;
end;
$$;
create function t.repair_reclaim() returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
begin
  alter function trunkline_internal.move_running_aside(trunkline_internal.move[], timestamptz) rename to move_running;
end;
$$;

-- Steps

-- What is recorded of steps, and on which day.
create function t.recorded() returns table (job_id uuid, result jsonb, day date)
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select s.job_id, s.result, s.day from trunkline_internal.recorded_steps as s;
end;

-- Partitions of steps that ended before the retention.
create function t.old_step_partitions() returns bigint
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select count(*) from trunkline_internal.partitions as p
  where p.parent = 'recorded_steps' and p.upper_bound < trunkline.clock() - interval '31 days';
end;

-- Names of the events that are kept.
create function t.kept_events() returns setof text
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select e.name from trunkline_internal.sent_events as e;
end;

-- How many waits are stored.
create function t.waits() returns bigint
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select count(*) from trunkline_internal.job_waits as w;
end;

-- Runs the duty sweep_steps, and returns how many rows it processed.
create function t.sweep_steps() returns integer
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
begin
  return trunkline_internal.duty_sweep_steps();
end;
$$;

-- Makes running jobs members of a workflow that has no row.
create function t.join_workflow(p_jobs uuid[]) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp
begin atomic
  update trunkline_internal.running as r
  set workflow_id = '00000000-0000-7000-8000-000000000001', workflow_step = 0, workflow_item = array_position(p_jobs, r.job_id) - 1
  where r.job_id = any(p_jobs);
end;

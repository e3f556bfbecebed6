-- Duty: enqueues the jobs of schedules that are due, at most p_limit in one run, each due time once however many sessions call it; returns one row for each due time.
-- A session that acts for one tenant leaves this to other sessions and receives nothing.
create or replace function trunkline.run_schedules(p_limit integer default 100)
returns setof trunkline.schedule_run
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
as $$
declare
  v_runs jsonb;
begin
  perform trunkline_internal.check_duty_limit(p_limit => p_limit, p_maximum => 1000);
  select r.result
  into v_runs
  from trunkline_internal.guard_duty(p_duty => 'run_schedules', p_limit => p_limit, p_keep_rows => true) as r;
  return query
  select r.schedule, r.due_at, r.job_id, r.error
  from jsonb_populate_recordset(null::trunkline.schedule_run, v_runs) as r;
end;
$$;
comment on function trunkline.run_schedules(integer) is 'Duty: enqueues the jobs of schedules that are due, at most p_limit in one run, each due time once however many sessions call it; returns one row for each due time.';

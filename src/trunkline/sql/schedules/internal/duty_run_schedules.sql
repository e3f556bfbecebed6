-- Enqueues the jobs of schedules that are due, at most p_limit; returns one row for each due time. The work of trunkline.run_schedules.
-- none -> ready (by enqueue). Locks due schedules, skipping those that another session changes; then what enqueue locks.
-- Schedules that are on time go before those that catch up, and each gets an equal share of the limit, so that a long
-- backlog under the policy `all` delays no other schedule.
create or replace function trunkline_internal.duty_run_schedules(p_limit integer default 100)
returns setof trunkline.schedule_run
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
as $$
declare
  c_grace constant interval := interval '60 seconds';
  v_now timestamptz := trunkline.clock();
  v_name text;
  v_names text[];
  v_schedule trunkline_internal.schedules;
begin
  v_names := array(
    select s.schedule
    from trunkline_internal.schedules as s
    where not s.paused and s.next_run_at <= v_now
    order by s.missed = 'all' and s.next_run_at < v_now - c_grace, s.next_run_at, s.schedule
    limit p_limit
    for update skip locked
  );
  foreach v_name in array v_names loop
    select s.* into strict v_schedule from trunkline_internal.schedules as s where s.schedule = v_name;
    return query
    select r.schedule, r.due_at, r.job_id, r.error
    from unnest(trunkline_internal.run_schedule(
      p_schedule => v_schedule, p_now => v_now, p_most => p_limit / cardinality(v_names)
    )) as r;
  end loop;
end;
$$;
comment on function trunkline_internal.duty_run_schedules(integer) is 'Enqueues the jobs of schedules that are due, at most p_limit; returns one row for each due time. The work of trunkline.run_schedules.';

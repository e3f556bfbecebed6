-- Enqueues what schedules say is due, each due time once however many processes look: a duty.
-- none -> ready (by enqueue). Locks: the duty, then due schedules, skipping those that somebody
-- changes; then what enqueue locks. Schedules that are on time go before those that catch up, and
-- each may take an equal share of the limit, so that a long backlog under the policy all holds up nobody.
create or replace function trunkline.run_schedules(p_limit integer default 100)
returns setof trunkline.schedule_run
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
as $$
declare
  c_grace constant interval := interval '60 seconds';
  v_now timestamptz;
  v_names text[];
  v_name text;
  v_schedule trunkline_internal.schedules;
  v_runs trunkline.schedule_run[] := '{}'::trunkline.schedule_run[];
begin
  if p_limit is null or p_limit not between 1 and 1000 then
    perform trunkline_internal.refuse(
      p_name => 'limit_out_of_range',
      p_detail => jsonb_build_object('limit', p_limit, 'minimum', 1, 'maximum', 1000)
    );
  end if;
  perform trunkline_internal.require_read_committed();
  -- A session that acts for one tenant leaves this to others: it could not enqueue for the rest, and
  -- the duty would count as done.
  if trunkline.tenant_scope() is not null or not trunkline_internal.duty_begin(p_duty => 'run_schedules') then
    return;
  end if;
  begin
    v_now := trunkline.clock();
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
      v_runs := v_runs || trunkline_internal.run_schedule(
        p_schedule => v_schedule, p_now => v_now, p_most => p_limit / cardinality(v_names)
      );
    end loop;
    perform trunkline_internal.duty_end(p_duty => 'run_schedules', p_rows => cardinality(v_runs));
  exception
    when others then
      -- What was enqueued is undone with the rest of this block, so nothing of it is told either.
      v_runs := '{}'::trunkline.schedule_run[];
      perform trunkline_internal.duty_failed(p_duty => 'run_schedules', p_sqlstate => sqlstate, p_message => sqlerrm);
  end;
  return query select r.schedule, r.due_at, r.job_id, r.error from unnest(v_runs) as r;
end;
$$;
comment on function trunkline.run_schedules(integer) is 'Enqueues what schedules say is due, each due time once however many processes look: a duty.';

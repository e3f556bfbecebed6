-- Resumes a paused schedule from now on; due times during the pause do not count as missed.
-- paused -> active. Locks the schedule's row. An active schedule stays unchanged.
create or replace function trunkline.resume_schedule(p_schedule text)
returns trunkline.schedule_change
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
as $$
declare
  v_before jsonb;
  v_now timestamptz := trunkline.clock();
  v_schedule trunkline_internal.schedules := trunkline_internal.lock_schedule(p_schedule => p_schedule);
  v_next timestamptz := v_schedule.next_run_at;
begin
  v_before := trunkline_internal.operated_state(p_kind => 'schedule', p_object => p_schedule);
  if v_schedule.paused then
    v_next := trunkline_internal.cron_next(
      p_cron => v_schedule.cron, p_time_zone => v_schedule.time_zone, p_after => v_now
    );
    update trunkline_internal.schedules as s
    set paused = false, next_run_at = v_next, last_error = null, last_error_at = null, updated_at = v_now
    where s.schedule = p_schedule;
  end if;
  perform trunkline_internal.log_change(
    p_action => 'resume_schedule', p_kind => 'schedule', p_object => p_schedule, p_before => v_before
  );
  return row(p_schedule, false, false, v_next)::trunkline.schedule_change;
end;
$$;
comment on function trunkline.resume_schedule(text) is 'Resumes a paused schedule from now on; due times during the pause do not count as missed.';

-- Pauses a schedule: it enqueues nothing until it is resumed. A schedule that is already paused stays unchanged.
-- active -> paused. Locks the schedule's row.
create or replace function trunkline.pause_schedule(p_schedule text)
returns trunkline.schedule_change
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before jsonb;
  v_now timestamptz := trunkline.clock();
  v_schedule trunkline_internal.schedules := trunkline_internal.lock_schedule(p_schedule => p_schedule);
begin
  v_before := trunkline_internal.operated_state(p_kind => 'schedule', p_object => p_schedule);
  if not v_schedule.paused then
    update trunkline_internal.schedules as s
    set paused = true, next_run_at = null, updated_at = v_now
    where s.schedule = p_schedule;
  end if;
  perform trunkline_internal.log_change(
    p_action => 'pause_schedule', p_kind => 'schedule', p_object => p_schedule, p_before => v_before
  );
  return row(p_schedule, false, true, null)::trunkline.schedule_change;
end;
$$;
comment on function trunkline.pause_schedule(text) is 'Pauses a schedule: it enqueues nothing until it is resumed. A schedule that is already paused stays unchanged.';

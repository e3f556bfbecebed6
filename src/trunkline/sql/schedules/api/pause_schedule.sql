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
  v_now timestamptz := trunkline.clock();
  v_schedule trunkline_internal.schedules := trunkline_internal.lock_schedule(p_schedule => p_schedule);
begin
  if not v_schedule.paused then
    update trunkline_internal.schedules as s
    set paused = true, next_run_at = null, updated_at = v_now
    where s.schedule = p_schedule;
  end if;
  return row(p_schedule, false, true, null)::trunkline.schedule_change;
end;
$$;
comment on function trunkline.pause_schedule(text) is 'Pauses a schedule: it enqueues nothing until it is resumed. A schedule that is already paused stays unchanged.';

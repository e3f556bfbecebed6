-- Removes a schedule; the jobs that it has enqueued stay.
-- active | paused -> none. Locks the schedule's row.
create or replace function trunkline.remove_schedule(p_schedule text)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before jsonb;
begin
  perform trunkline_internal.lock_schedule(p_schedule => p_schedule);
  v_before := trunkline_internal.operated_state(p_kind => 'schedule', p_object => p_schedule);
  delete from trunkline_internal.schedules as s where s.schedule = p_schedule;
  perform trunkline_internal.log_change(
    p_action => 'remove_schedule', p_kind => 'schedule', p_object => p_schedule, p_before => v_before
  );
end;
$$;
comment on function trunkline.remove_schedule(text) is 'Removes a schedule; the jobs that it has enqueued stay.';

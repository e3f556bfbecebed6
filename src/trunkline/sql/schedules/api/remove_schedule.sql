-- Removes a schedule; the jobs that it has enqueued stay.
-- active | paused -> none. Locks the schedule's row.
create or replace function trunkline.remove_schedule(p_schedule text)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform trunkline_internal.lock_schedule(p_schedule => p_schedule);
  delete from trunkline_internal.schedules as s where s.schedule = p_schedule;
end;
$$;
comment on function trunkline.remove_schedule(text) is 'Removes a schedule; the jobs that it has enqueued stay.';

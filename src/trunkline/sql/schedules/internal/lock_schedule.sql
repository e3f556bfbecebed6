-- Locks a schedule of the caller's tenant and returns it; refuses an unknown one with the list of known schedules.
-- Called by pause_schedule, resume_schedule and remove_schedule. Waits for a run that has locked the row.
create or replace function trunkline_internal.lock_schedule(p_schedule text)
returns trunkline_internal.schedules
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_scope text := trunkline.tenant_scope();
  v_schedule trunkline_internal.schedules;
begin
  select s.*
  into v_schedule
  from trunkline_internal.schedules as s
  where s.schedule = p_schedule and (v_scope is null or s.tenant = v_scope)
  for update;
  if not found then
    perform trunkline_internal.refuse(
      p_name => 'unknown_schedule',
      p_detail => jsonb_build_object(
        'schedule', p_schedule,
        'known', coalesce((
          select jsonb_agg(k.schedule)
          from (
            select s.schedule
            from trunkline_internal.schedules as s
            where v_scope is null or s.tenant = v_scope
            order by s.schedule
            limit 200
          ) as k
        ), '[]'::jsonb)
      )
    );
  end if;
  return v_schedule;
end;
$$;
comment on function trunkline_internal.lock_schedule(text) is 'Locks a schedule of the caller''s tenant and returns it; refuses an unknown one with the list of known schedules.';

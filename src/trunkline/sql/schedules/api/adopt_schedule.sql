-- Renames the schedule that a task's code declared under an old name, keeping its due time; returns whether there was one.
-- If a schedule with the new name already exists, the old one is removed. Schedules with other names are left alone, even
-- if their task is the alias. Workers of a renamed task call this before they set its schedule. Locks the schedule's row.
create or replace function trunkline.adopt_schedule(p_task text, p_alias text)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_scope text := trunkline.tenant_scope();
begin
  if p_task is null or p_task = '' or octet_length(p_task) > 191 or p_task = p_alias then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object('argument', 'p_task', 'must_be', '1 to 191 bytes, and not p_alias')
    );
  end if;
  perform trunkline_internal.task_policy(p_task => p_task);
  perform
  from trunkline_internal.schedules as s
  where s.schedule = p_alias and s.task in (p_alias, p_task) and (v_scope is null or s.tenant = v_scope)
  for update;
  if not found then
    return false;
  end if;
  begin
    update trunkline_internal.schedules as s
    set schedule = p_task, task = p_task, updated_at = trunkline.clock()
    where s.schedule = p_alias;
  exception
    when unique_violation then
      if v_scope is not null
        and not exists (select from trunkline_internal.schedules as s where s.schedule = p_task and s.tenant = v_scope)
      then
        perform trunkline_internal.refuse(p_name => 'tenant_denied', p_detail => jsonb_build_object('schedule', p_task));
      end if;
      delete from trunkline_internal.schedules as s where s.schedule = p_alias;
  end;
  perform trunkline_internal.log_action(
    p_action => 'adopt_schedule', p_kind => 'schedule', p_object => p_task,
    p_before => jsonb_build_object('schedule', p_alias), p_after => jsonb_build_object('schedule', p_task), p_tenant => v_scope
  );
  return true;
end;
$$;
comment on function trunkline.adopt_schedule(text, text) is 'Renames the schedule that a task''s code declared under an old name, keeping its due time; returns whether there was one.';

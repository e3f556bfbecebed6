-- Gives the policy of a task; a task nobody registered is refused with the list of known ones, or registered where the setting allows it.
create or replace function trunkline_internal.task_policy(p_task text)
returns trunkline_internal.tasks
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_policy trunkline_internal.tasks;
begin
  select t.* into v_policy from trunkline_internal.tasks as t where t.task = p_task;
  if found then
    return v_policy;
  end if;
  if not trunkline_internal.setting(p_name => 'allow_unknown_tasks')::boolean then
    perform trunkline_internal.refuse(
      p_name => 'unknown_task',
      p_detail => jsonb_build_object(
        'task', p_task,
        'known', coalesce((
          select jsonb_agg(k.task) from (select t.task from trunkline_internal.tasks as t order by t.task limit 200) as k
        ), '[]'::jsonb)
      )
    );
  end if;
  perform trunkline.register_task(p_task => p_task);
  select t.* into strict v_policy from trunkline_internal.tasks as t where t.task = p_task;
  return v_policy;
end;
$$;
comment on function trunkline_internal.task_policy(text) is 'Gives the policy of a task; a task nobody registered is refused with the list of known ones, or registered where the setting allows it.';

-- Returns the policy of a task; refuses an unknown task with the list of known ones, or registers it if allow_unknown_tasks is set.
create or replace function trunkline_internal.task_policy(p_task text)
returns trunkline_internal.tasks
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_scope text;
  v_policy trunkline_internal.tasks;
begin
  select t.* into v_policy from trunkline_internal.tasks as t where t.task = p_task;
  if found then
    return v_policy;
  end if;
  v_scope := trunkline.tenant_scope();
  -- A session that acts for one tenant cannot change tasks and does not receive the list of known tasks.
  if v_scope is not null or not trunkline_internal.setting(p_name => 'allow_unknown_tasks')::boolean then
    perform trunkline_internal.refuse(
      p_name => 'unknown_task',
      p_detail => jsonb_build_object('task', p_task) || case
        when v_scope is not null then '{}'::jsonb
        else jsonb_build_object('known', coalesce((
          select jsonb_agg(k.task) from (select t.task from trunkline_internal.tasks as t order by t.task limit 200) as k
        ), '[]'::jsonb))
      end
    );
  end if;
  perform trunkline.register_task(p_task => p_task);
  select t.* into strict v_policy from trunkline_internal.tasks as t where t.task = p_task;
  return v_policy;
end;
$$;
comment on function trunkline_internal.task_policy(text) is 'Returns the policy of a task; refuses an unknown task with the list of known ones, or registers it if allow_unknown_tasks is set.';

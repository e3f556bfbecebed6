-- Refuses a change that would hide jobs of a profile or their audit, unless the installation of the profile makes it.
-- Producers, workers and operators register tasks. The views of a profile find its jobs by the profile of their
-- task, and its audit consists of the events of audited tasks. A profile is installed as trunkline_owner. Operators may
-- still move a task without audit to another profile. Called by store_task for rows that change.
create or replace function trunkline_internal.guard_profile_task(
  p_old trunkline_internal.tasks,
  p_new trunkline_internal.tasks
)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller name := coalesce(nullif(current_setting('role'), 'none')::name, session_user);
begin
  -- 'default' means that a task belongs to no profile; a new task has it until its policy is stored.
  if p_old.profile <> 'default'
    and (p_new.profile is distinct from p_old.profile or p_old.audit and not p_new.audit)
    and (p_old.audit or not pg_has_role(v_caller, 'trunkline_operator', 'usage'))
    and not pg_has_role(v_caller, 'trunkline_owner', 'usage')
  then
    perform trunkline_internal.refuse(
      p_name => 'invalid_policy',
      p_detail => jsonb_build_object(
        'task', p_old.task,
        'argument', case when p_new.profile is distinct from p_old.profile then 'profile' else 'audit' end,
        'must_be', 'as it is: the task belongs to profile ' || p_old.profile || ', and only its installation changes this'
      )
    );
  end if;
end;
$$;
comment on function trunkline_internal.guard_profile_task(trunkline_internal.tasks, trunkline_internal.tasks) is 'Refuses a change that would hide jobs of a profile or their audit, unless the installation of the profile makes it.';

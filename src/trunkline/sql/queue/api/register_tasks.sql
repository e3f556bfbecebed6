-- Registers many tasks in one call, all or none, as register_task does; returns how many were new or changed.
-- p_tasks is a JSON array of objects with the arguments of register_task as keys, without the p_. An unchanged task is
-- neither locked nor written, so the start of a worker costs one round trip and writes nothing. Locks the row of
-- limit_templates for new limit names with keys, then rows of tasks in the order of their names.
-- Two more keys are allowed. declares has the limits that the code declares, by name (see declare_limits). alias_of names
-- the task whose handler runs jobs of this name; it is informational, so a session that acts for one tenant does not
-- change it.
create or replace function trunkline.register_tasks(p_tasks jsonb)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  c_fields constant text[] := array[
    'task', 'queue', 'lease', 'hard_limit', 'max_attempts', 'backoff', 'audit', 'priority', 'unique_until', 'crash_limit',
    'reclaim_on_worker_death', 'lost_backoff', 'dead_when_deferred', 'profile', 'limits', 'cost',
    'declares', 'alias_of'
  ];
  v_changed integer := 0;
  v_declared integer;
  v_index integer;
  v_last text;
  v_now timestamptz := trunkline.clock();
  v_policy record;
  v_task record;
begin
  if p_tasks is null or jsonb_typeof(p_tasks) <> 'array' or jsonb_array_length(p_tasks) > 10000
    or pg_column_size(p_tasks) > 16777216
  then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object('argument', 'p_tasks', 'must_be', 'a JSON array of at most 10000 objects and 16 MB')
    );
  end if;
  perform trunkline_internal.lock_limit_templates(p_names => array(
    select n.name
    from jsonb_array_elements(p_tasks) as t (policy)
    cross join lateral (
      select l.name
      from jsonb_array_elements_text(case when jsonb_typeof(t.policy -> 'limits') = 'array' then t.policy -> 'limits' end) as l (name)
      union all
      select d.name
      from jsonb_object_keys(case when jsonb_typeof(t.policy -> 'declares') = 'object' then t.policy -> 'declares' end) as d (name)
    ) as n
    where trunkline.tenant_scope() is null
  ));
  for v_task in
    select t.policy, (t.place - 1)::integer as index
    from jsonb_array_elements(p_tasks) with ordinality as t (policy, place)
    order by t.policy ->> 'task' collate "C", t.place
  loop
    v_index := v_task.index;
    if jsonb_typeof(v_task.policy) <> 'object' or v_task.policy - c_fields <> '{}'::jsonb then
      perform trunkline_internal.refuse(
        p_name => 'invalid_argument',
        p_detail => jsonb_build_object(
          'argument', 'p_tasks', 'index', v_index, 'task', v_task.policy -> 'task',
          'unknown_fields', case when jsonb_typeof(v_task.policy) = 'object' then (
            select jsonb_agg(f.field) from jsonb_object_keys(v_task.policy - c_fields) as f (field)
          ) end,
          'must_be', c_fields
        )
      );
    end if;
    select p.* into v_policy
    from jsonb_to_record(v_task.policy) as p (
      task text, queue text, lease interval, hard_limit interval, max_attempts integer, backoff jsonb,
      audit boolean, priority integer, unique_until text, crash_limit integer,
      reclaim_on_worker_death boolean, lost_backoff boolean, dead_when_deferred boolean, profile text,
      limits text[], cost jsonb, declares jsonb, alias_of text
    );
    -- With two policies for one task, the one that applies would be arbitrary.
    if v_policy.task = v_last then
      perform trunkline_internal.refuse(
        p_name => 'invalid_argument',
        p_detail => jsonb_build_object(
          'argument', 'p_tasks', 'index', v_index, 'task', v_policy.task, 'must_be', 'each task once'
        )
      );
    end if;
    v_last := v_policy.task;
    if v_policy.alias_of = v_policy.task or v_policy.alias_of = '' or length(v_policy.alias_of) > 200 then
      perform trunkline_internal.refuse(
        p_name => 'invalid_policy',
        p_detail => jsonb_build_object(
          'task', v_policy.task, 'argument', 'alias_of', 'must_be', 'the name of another task, of at most 200 characters'
        )
      );
    end if;
    v_declared := trunkline_internal.declare_limits(p_task => v_policy.task, p_declares => v_policy.declares);
    if trunkline_internal.store_task(
      p_task => v_policy.task, p_queue => v_policy.queue, p_lease => v_policy.lease,
      p_hard_limit => v_policy.hard_limit, p_max_attempts => v_policy.max_attempts, p_backoff => v_policy.backoff,
      p_audit => v_policy.audit, p_priority => v_policy.priority, p_unique_until => v_policy.unique_until,
      p_crash_limit => v_policy.crash_limit, p_reclaim_on_worker_death => v_policy.reclaim_on_worker_death,
      p_lost_backoff => v_policy.lost_backoff, p_dead_when_deferred => v_policy.dead_when_deferred,
      p_profile => v_policy.profile, p_limits => v_policy.limits, p_cost => v_policy.cost, p_now => v_now
    ) or v_declared > 0 then
      v_changed := v_changed + 1;
    end if;
    update trunkline_internal.tasks as t
    set alias_of = v_policy.alias_of
    where t.task = v_policy.task
      and t.alias_of is distinct from v_policy.alias_of
      and trunkline.tenant_scope() is null;
  end loop;
  return v_changed;
exception
  when data_exception then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object(
        'argument', 'p_tasks', 'index', v_index, 'task', v_task.policy -> 'task',
        'must_be', 'objects whose fields have the types of register_task''s arguments', 'reason', sqlerrm
      )
    );
    -- Not reached: the refusal ends the call.
    return null;
end;
$$;
comment on function trunkline.register_tasks(jsonb) is 'Registers many tasks in one call, all or none, as register_task does; returns how many were new or changed.';

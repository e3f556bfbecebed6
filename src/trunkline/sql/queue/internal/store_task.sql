-- Stores the given parts of a task's policy and returns whether anything changed; an unchanged task is neither locked nor written.
-- Workers register their tasks at every start, and most of them change nothing. So the function first reads the row
-- without a lock. If it has to write, it locks the row and reads it again, so that two processes that start together do not
-- mix their policies. A session that acts for one tenant may register a task with its stored policy, but may change
-- nothing. Called by register_task and register_tasks.
create or replace function trunkline_internal.store_task(
  p_task text,
  p_queue text,
  p_lease interval,
  p_hard_limit interval,
  p_max_attempts integer,
  p_backoff jsonb,
  p_audit boolean,
  p_priority integer,
  p_unique_until text,
  p_crash_limit integer,
  p_reclaim_on_worker_death boolean,
  p_lost_backoff boolean,
  p_dead_when_deferred boolean,
  p_profile text,
  p_limits text[],
  p_cost jsonb,
  p_now timestamptz
)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_changed boolean;
  v_constraint text;
  v_given jsonb;
  v_is_known boolean;
  v_new trunkline_internal.tasks;
  v_old trunkline_internal.tasks;
  v_other text;
begin
  perform trunkline_internal.check_policy(
    p_task => p_task, p_queue => p_queue, p_lease => p_lease, p_hard_limit => p_hard_limit,
    p_max_attempts => p_max_attempts, p_backoff => p_backoff, p_unique_until => p_unique_until,
    p_crash_limit => p_crash_limit, p_priority => p_priority, p_profile => p_profile,
    p_limits => p_limits, p_cost => p_cost
  );
  -- The keys are column names. Times are in seconds, because the length of a month in an interval depends on the date that
  -- it is added to.
  v_given := jsonb_strip_nulls(jsonb_build_object(
    'queue', p_queue,
    'profile', p_profile,
    'lease', make_interval(secs => extract(epoch from p_lease)::double precision),
    'hard_limit', make_interval(secs => extract(epoch from p_hard_limit)::double precision),
    'max_attempts', p_max_attempts,
    'priority', p_priority,
    'backoff_base', make_interval(secs => (p_backoff ->> 'base')::double precision),
    'backoff_factor', p_backoff -> 'factor',
    'backoff_cap', make_interval(secs => (p_backoff ->> 'cap')::double precision),
    'backoff_jitter', p_backoff -> 'jitter',
    'lost_backoff', p_lost_backoff,
    'reclaim_on_worker_death', p_reclaim_on_worker_death,
    'crash_limit', p_crash_limit,
    'unique_until', p_unique_until,
    'dead_when_deferred', p_dead_when_deferred,
    'audit', p_audit,
    'limits', p_limits,
    'cost', p_cost
  ));
  select t.* into v_old from trunkline_internal.tasks as t where t.task = p_task;
  if found and jsonb_populate_record(v_old, v_given) is not distinct from v_old then
    perform trunkline_internal.ensure_lane(p_queue => v_old.queue, p_lane => v_old.priority * 2);
    return false;
  end if;
  v_is_known := found;
  if trunkline.tenant_scope() is not null then
    v_new := jsonb_populate_record(v_old, v_given);
    perform trunkline_internal.refuse(
      p_name => 'needs_all_tenants',
      p_detail => jsonb_build_object('task', p_task, 'known', v_is_known) || case
        when v_is_known then jsonb_build_object('differs', (
          select jsonb_agg(g.field order by g.field)
          from jsonb_object_keys(v_given) as g (field)
          where to_jsonb(v_new) -> g.field is distinct from to_jsonb(v_old) -> g.field
        ))
        else '{}'::jsonb
      end
    );
  end if;
  select min(o.other collate "C") into v_other
  from unnest(p_limits) as n (name)
  cross join lateral trunkline_internal.overlapping_limit(p_name => n.name, p_task => p_task, p_others => p_limits) as o (other)
  where array_position(v_old.limits, n.name) is null;
  if v_other is not null then
    perform trunkline_internal.refuse(
      p_name => 'invalid_policy',
      p_detail => jsonb_build_object(
        'task', p_task, 'argument', 'p_limits',
        'must_be', format('names that cannot be filled in to the same as another limit: %s overlaps', v_other)
      )
    );
  end if;
  insert into trunkline_internal.tasks (task, registered_at, updated_at)
  values (p_task, p_now, p_now)
  on conflict (task) do nothing;
  v_changed := found;
  select t.* into strict v_old from trunkline_internal.tasks as t where t.task = p_task for update;
  v_new := jsonb_populate_record(v_old, v_given);
  perform trunkline_internal.guard_profile_task(p_old => v_old, p_new => v_new);
  update trunkline_internal.tasks as t
  set
    queue = v_new.queue,
    profile = v_new.profile,
    lease = v_new.lease,
    hard_limit = v_new.hard_limit,
    max_attempts = v_new.max_attempts,
    priority = v_new.priority,
    backoff_base = v_new.backoff_base,
    backoff_factor = v_new.backoff_factor,
    backoff_cap = v_new.backoff_cap,
    backoff_jitter = v_new.backoff_jitter,
    lost_backoff = v_new.lost_backoff,
    reclaim_on_worker_death = v_new.reclaim_on_worker_death,
    crash_limit = v_new.crash_limit,
    unique_until = v_new.unique_until,
    dead_when_deferred = v_new.dead_when_deferred,
    audit = v_new.audit,
    limits = v_new.limits,
    cost = v_new.cost,
    updated_at = p_now
  where t.task = p_task and v_new is distinct from v_old;
  v_changed := v_changed or found;
  perform trunkline_internal.ensure_lane(p_queue => v_new.queue, p_lane => v_new.priority * 2);
  return v_changed;
exception
  when check_violation then
    get stacked diagnostics v_constraint = constraint_name;
    perform trunkline_internal.refuse(
      p_name => 'invalid_policy',
      p_detail => jsonb_build_object('task', p_task, 'argument', v_constraint, 'must_be', 'within its range')
    );
    -- Not reached: the refusal ends the call.
    return null;
end;
$$;
comment on function trunkline_internal.store_task(text, text, interval, interval, integer, jsonb, boolean, integer, text, integer, boolean, boolean, boolean, text, text[], jsonb, timestamptz) is 'Stores the given parts of a task''s policy and returns whether anything changed; an unchanged task is neither locked nor written.';

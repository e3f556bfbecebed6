-- Makes a task known, or changes the parts of its policy that are given; what is left out keeps its value, or gets the default of a new task.
create or replace function trunkline.register_task(
  p_task text,
  p_queue text default null,
  p_lease interval default null,
  p_hard_limit interval default null,
  p_max_attempts integer default null,
  p_backoff jsonb default null,
  p_audit boolean default null,
  p_priority integer default null,
  p_unique_until text default null,
  p_crash_limit integer default null,
  p_reclaim_on_worker_death boolean default null,
  p_lost_backoff boolean default null,
  p_dead_when_deferred boolean default null,
  p_profile text default null
)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := trunkline.clock();
  v_policy trunkline_internal.tasks;
  v_constraint text;
begin
  perform trunkline_internal.check_policy(
    p_task => p_task, p_queue => p_queue, p_lease => p_lease, p_hard_limit => p_hard_limit,
    p_max_attempts => p_max_attempts, p_backoff => p_backoff, p_unique_until => p_unique_until,
    p_crash_limit => p_crash_limit, p_priority => p_priority, p_profile => p_profile
  );
  insert into trunkline_internal.tasks as t (task, registered_at, updated_at)
  values (p_task, v_now, v_now)
  on conflict (task) do nothing;
  -- The row is locked first, so that two processes that start together do not mix their policies.
  select t.* into strict v_policy from trunkline_internal.tasks as t where t.task = p_task for update;
  update trunkline_internal.tasks as t
  set
    queue = coalesce(p_queue, t.queue),
    profile = coalesce(p_profile, t.profile),
    -- In seconds: a month in an interval is longer or shorter by the day it is added to.
    lease = coalesce(make_interval(secs => extract(epoch from p_lease)::double precision), t.lease),
    hard_limit = coalesce(make_interval(secs => extract(epoch from p_hard_limit)::double precision), t.hard_limit),
    max_attempts = coalesce(p_max_attempts, t.max_attempts),
    priority = coalesce(p_priority, t.priority),
    backoff_base = coalesce(make_interval(secs => (p_backoff ->> 'base')::double precision), t.backoff_base),
    backoff_factor = coalesce((p_backoff ->> 'factor')::double precision, t.backoff_factor),
    backoff_cap = coalesce(make_interval(secs => (p_backoff ->> 'cap')::double precision), t.backoff_cap),
    backoff_jitter = coalesce((p_backoff ->> 'jitter')::double precision, t.backoff_jitter),
    lost_backoff = coalesce(p_lost_backoff, t.lost_backoff),
    reclaim_on_worker_death = coalesce(p_reclaim_on_worker_death, t.reclaim_on_worker_death),
    crash_limit = coalesce(p_crash_limit, t.crash_limit),
    unique_until = coalesce(p_unique_until, t.unique_until),
    dead_when_deferred = coalesce(p_dead_when_deferred, t.dead_when_deferred),
    audit = coalesce(p_audit, t.audit),
    updated_at = v_now
  where t.task = p_task
  returning t.* into v_policy;
  perform trunkline_internal.ensure_lane(p_queue => v_policy.queue, p_lane => v_policy.priority * 2);
  return p_task;
exception
  when check_violation then
    get stacked diagnostics v_constraint = constraint_name;
    perform trunkline_internal.refuse(
      p_name => 'invalid_policy',
      p_detail => jsonb_build_object('task', p_task, 'argument', v_constraint, 'must_be', 'within its range')
    );
    -- Not reached: the refusal has ended the call.
    return null;
end;
$$;
comment on function trunkline.register_task(text, text, interval, interval, integer, jsonb, boolean, integer, text, integer, boolean, boolean, boolean, text) is 'Makes a task known, or changes the parts of its policy that are given; what is left out keeps its value, or gets the default of a new task.';

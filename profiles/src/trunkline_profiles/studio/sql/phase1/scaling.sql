-- How many workers each pool wants: the source's rule about pending tasks, on top of the engine's signal.
-- requires: catalogue
-- source: 2.11

create table if not exists studio.pool_targets (
  task_type text primary key references studio.task_types (task_type),
  minimum integer not null check (minimum >= 0),
  wanted integer not null check (wanted >= 0),
  low_since timestamptz,
  decided_at timestamptz not null
);
comment on table studio.pool_targets is 'How many workers each pool was last found to want. minimum is the part that follows from pending tasks; low_since is since when few are pending.';
alter table studio.pool_targets enable row level security;
alter table studio.pool_targets force row level security;
drop policy if exists owner_rows on studio.pool_targets;
create policy owner_rows on studio.pool_targets to trunkline_owner using (true) with check (true);

create table if not exists studio.pool_decisions (
  decision bigint generated always as identity primary key,
  at timestamptz not null,
  task_type text not null,
  wanted integer not null,
  wanted_before integer,
  pending bigint not null,
  startable bigint not null,
  workers integer not null
);
create index if not exists pool_decisions_by_time on studio.pool_decisions (at);
comment on table studio.pool_decisions is 'Changes of the number of workers that a pool wants, with the counts that led to them, for 30 days.';
alter table studio.pool_decisions enable row level security;
alter table studio.pool_decisions force row level security;
drop policy if exists service_only on studio.pool_decisions;
create policy service_only on studio.pool_decisions
to trunkline_owner, trunkline_operator, trunkline_reader using (true) with check (true);

create or replace function studio.pool_minimum(
  p_pending bigint,
  p_minimum integer,
  p_low_since timestamptz,
  out minimum integer,
  out low_since timestamptz
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_rule record;
begin
  select
    max(s.value) filter (where s.name = 'scale_up_pending') as up_pending,
    max(s.value) filter (where s.name = 'scale_up_workers') as up_workers,
    max(s.value) filter (where s.name = 'scale_down_pending') as down_pending,
    max(s.value) filter (where s.name = 'scale_down_after') as down_after
  into v_rule
  from trunkline.settings as s
  where s.name like 'scale\_%';
  minimum := coalesce(p_minimum, 0);
  if p_pending > v_rule.up_pending::integer then
    minimum := greatest(minimum, v_rule.up_workers::integer);
  elsif minimum > 0 and p_pending < v_rule.down_pending::integer then
    low_since := coalesce(p_low_since, trunkline.clock());
    if trunkline.clock() - low_since >= v_rule.down_after::interval then
      minimum := 0;
      low_since := null;
    end if;
  end if;
end;
$$;
comment on function studio.pool_minimum(bigint, integer, timestamptz) is 'Returns the minimum of workers that follows from pending tasks: raised above 100, given up after fewer than 20 for ten minutes. The settings scale_* of the engine change these numbers.';

-- The engine's number counts what could start now. With ten running tasks per user, most pending tasks of few users
-- cannot, so the source's rule sets a minimum from what is pending. Both counts are bounded, so reading costs the same for
-- any backlog.
create or replace view studio.wanted_workers with (security_barrier = true) as
select
  t.task_type, least(greatest(m.minimum, e.wanted), x.most) as wanted, e.workers, p.pending, e.startable, m.minimum, m.low_since
from studio.task_types as t
left join studio.pool_targets as d on d.task_type = t.task_type
left join trunkline.queue_sizes(p_queues => array(select distinct o.queue from studio.task_types as o)) as s on s.queue = t.queue
cross join lateral (select coalesce((s.ready_tasks ->> t.task_type)::bigint, 0) as pending) as p
cross join lateral studio.pool_minimum(p_pending => p.pending, p_minimum => d.minimum, p_low_since => d.low_since) as m
cross join lateral (
  select
    coalesce(max(w.wanted), 0) as wanted, coalesce(sum(w.workers), 0)::integer as workers, coalesce(max(w.startable), 0) as startable
  from trunkline.wanted_workers as w
  where w.queue = t.queue and (w.tasks is null or t.task_type = any(w.tasks))
) as e
cross join lateral (select s.value::integer as most from trunkline.settings as s where s.name = 'scale_max_workers') as x;
comment on view studio.wanted_workers is 'How many workers the pool of each type of tasks wants, and the counts from which that follows.';

create or replace function studio.decide_pools()
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before integer;
  v_changed integer := 0;
  v_pool record;
begin
  -- One run at a time: it may also be called by hand.
  lock table studio.pool_targets in share row exclusive mode;
  for v_pool in
    select w.* from studio.wanted_workers as w order by w.task_type
  loop
    select t.wanted into v_before from studio.pool_targets as t where t.task_type = v_pool.task_type;
    insert into studio.pool_targets as t (task_type, minimum, wanted, low_since, decided_at)
    values (v_pool.task_type, v_pool.minimum, v_pool.wanted, v_pool.low_since, trunkline.clock())
    on conflict (task_type) do update
    set minimum = excluded.minimum, wanted = excluded.wanted, low_since = excluded.low_since, decided_at = excluded.decided_at
    where (t.minimum, t.wanted, t.low_since) is distinct from (excluded.minimum, excluded.wanted, excluded.low_since);
    if v_pool.wanted <> coalesce(v_before, 0) then
      v_changed := v_changed + 1;
      insert into studio.pool_decisions (at, task_type, wanted, wanted_before, pending, startable, workers)
      values (
        trunkline.clock(), v_pool.task_type, v_pool.wanted, v_before, v_pool.pending, v_pool.startable, v_pool.workers
      );
    end if;
  end loop;
  delete from studio.pool_decisions as d where d.at < (select trunkline.clock() - interval '30 days');
  return v_changed;
end;
$$;
comment on function studio.decide_pools() is 'Stores how many workers each pool wants, so that a short dip does not lower it, and records each change; returns how many changed. Workers run it as a duty.';

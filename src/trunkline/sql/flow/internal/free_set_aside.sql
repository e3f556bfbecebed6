-- Returns jobs that were set aside and fit their limits again to their old places in their lanes, at most p_most; returns how many.
-- blocked -> ready with the sequence number that the job had. Nothing else reuses a number: a bucket that keeps a place
-- may have passed it, so the caller holds the bucket and the place is dropped with the same commit. A bucket that
-- somebody else holds is left to the next call, and so are rows that somebody has locked. The cheapest jobs of each
-- bucket are freed first, those of one cost in their order: what does not fit yet is never read.
create or replace function trunkline_internal.free_set_aside(p_most integer, p_now timestamptz)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
  -- Each is a lock.
  c_gates constant integer := 500;
  v_aside record;
  v_freed integer := 0;
  v_gate bigint := -9223372036854775808;
  v_gates bigint[] := array[]::bigint[];
  v_jobs uuid[];
  v_most bigint;
  v_queues text[] := array[]::text[];
  v_unit integer := 0;
begin
  while v_freed < p_most and cardinality(v_gates) < c_gates loop
    select a.gate, a.unit, a.limit_id
    into v_aside
    from trunkline_internal.set_aside as a
    where (a.gate, a.unit) > (v_gate, v_unit)
    order by a.gate, a.unit
    limit 1;
    exit when not found;
    v_gate := v_aside.gate;
    v_unit := v_aside.unit;
    select (trunkline_internal.most_at_once(p_limit => l))[v_unit]
    into v_most
    from trunkline_internal.limits as l
    where l.limit_id = trunkline_internal.limit_of(p_gate => v_gate, p_limit => v_aside.limit_id);
    v_jobs := array(
      select a.job_id
      from trunkline_internal.set_aside as a
      where a.gate = v_gate and a.unit = v_unit and a.cost <= coalesce(v_most, 9223372036854775807)
      order by a.cost, a.sequence
      limit p_most - v_freed
    );
    continue when cardinality(v_jobs) = 0;
    -- In a statement of its own: what was read before a bucket was held may be old.
    v_gates := v_gates || array(
      select g.gate
      from (
        select distinct w.gate
        from trunkline_internal.waiting as w
        where w.job_id = any(v_jobs) and w.gate <> all(v_gates)
        order by w.gate
        limit c_gates - cardinality(v_gates)
      ) as g
      where trunkline_internal.try_gate(p_gate => g.gate)
    );
    v_jobs := array(
      select w.job_id
      from trunkline_internal.waiting as w
      where w.job_id = any(v_jobs) and w.state = 'blocked' and w.gate = any(v_gates)
      order by w.job_id
      for update of w skip locked
    );
    -- Another of its limits may be too small by now: that is the one it waits for next.
    update trunkline_internal.set_aside as a
    set gate = o.gate, limit_id = o.limit_id, unit = o.unit, cost = o.cost
    from trunkline_internal.waiting as w
    cross join lateral trunkline_internal.outgrown_limit(p_need => w.need) as o
    where a.job_id = any(v_jobs) and w.job_id = a.job_id and o.gate is not null;
    v_jobs := array(
      select a.job_id
      from trunkline_internal.set_aside as a
      join trunkline_internal.waiting as w on w.job_id = a.job_id
      where a.job_id = any(v_jobs) and (trunkline_internal.outgrown_limit(p_need => w.need)).gate is null
    );
    continue when cardinality(v_jobs) = 0;
    update trunkline_internal.waiting as w
    set state = 'ready', sequence = a.sequence, reason = null
    from trunkline_internal.set_aside as a
    where w.job_id = any(v_jobs) and a.job_id = w.job_id;
    delete from trunkline_internal.set_aside as a where a.job_id = any(v_jobs);
    insert into trunkline_internal.events (at, job_id, attempt, kind, to_state, task, queue, tenant, actor)
    select p_now, w.job_id, w.attempt, 'freed', 'ready', w.task, w.queue, w.tenant, session_user
    from trunkline_internal.waiting as w
    where w.job_id = any(v_jobs);
    perform trunkline_internal.open_gates(p_jobs => v_jobs);
    perform trunkline_internal.drop_places(
      p_gates => array(select distinct w.gate from trunkline_internal.waiting as w where w.job_id = any(v_jobs))
    );
    v_queues := v_queues || array(select distinct w.queue from trunkline_internal.waiting as w where w.job_id = any(v_jobs));
    v_freed := v_freed + cardinality(v_jobs);
  end loop;
  if v_freed > 0 then
    perform trunkline_internal.wake_sleepers(p_queues => v_queues);
  end if;
  return v_freed;
end;
$$;
comment on function trunkline_internal.free_set_aside(integer, timestamptz) is 'Returns jobs that were set aside and fit their limits again to their old places in their lanes, at most p_most; returns how many.';

-- Finds limited jobs that may start now, locks them and their gates, and answers with them.
-- Waits for nobody: a gate that another claim holds, and rows that somebody holds, are skipped this time. The lock is
-- an advisory one, since a row's would be written to the log; it is taken in a statement of its own, because what was
-- read before it was taken may be old: two claims gave out a capacity of one.
-- Higher lanes first, whatever their gates; within a lane gates in a random order, each by sequence. Of a gate only
-- what fits from its head: a large job is not overtaken by the small ones behind it, or it would never start.
-- Lanes of a gate with much traffic are looked through from a kept place, as ready jobs are, or an old snapshot would
-- have every claim walk the dead entries of all jobs before. Nothing that lives is ever passed: the place is the one
-- before the first job that is there, whether this claim wants it or not; covered tells it to charge_gates.
create or replace function trunkline_internal.look_at_gates(
  p_queues text[],
  p_lanes smallint[],
  p_limit integer,
  p_tasks text[],
  p_scope text,
  p_now timestamptz,
  p_snapshot pg_snapshot,
  out jobs trunkline_internal.gated_job[],
  out covered jsonb
)
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
  c_most_gates constant integer := 200;
  v_bound bigint;
  v_fair bigint[];
  v_fair_limits integer[];
  v_gates bigint[];
  v_limits integer[];
  v_moved boolean;
begin
  select array_agg(g.gate), array_agg(g.limit_id), array_agg(g.gate) filter (where g.pool is not null)
  into v_gates, v_limits, v_fair
  from (
    select g.gate, g.limit_id, l.pool
    from (
      select distinct on (g.gate) g.gate, g.limit_id
      from trunkline_internal.gate_queues as g
      where g.queue = any(p_queues)
      order by g.gate, g.limit_id desc
    ) as g
    join trunkline_internal.limits as l on l.limit_id = g.limit_id and l.status = 'active'
    left join lateral (
      select s.free_at, s.reckoned_by, s.held_until, s.corrected_below
      from trunkline_internal.gate_states as s
      where s.gate = g.gate
      order by s.epoch desc
      limit 1
    ) as s on true
    where (s.held_until is null or s.held_until <= p_now)
      and (
        s.free_at is null
        or s.free_at <= p_now
        or s.reckoned_by < l.updated_at
        -- Something was given back since.
        or exists (
          select
          from trunkline_internal.gate_corrections as c
          where c.gate = g.gate and c.xid >= coalesce(s.corrected_below, '0'::xid8)
        )
      )
    order by random()
    limit c_most_gates
  ) as g;
  select
    array_agg(g.gate) filter (where not g.fair), array_agg(g.limit_id) filter (where not g.fair),
    array_agg(g.gate) filter (where g.fair), array_agg(g.limit_id) filter (where g.fair)
  into v_gates, v_limits, v_fair, v_fair_limits
  from (
    select g.gate, g.limit_id, coalesce(g.gate = any(v_fair), false) as fair
    from unnest(v_gates, v_limits) as g (gate, limit_id)
    where trunkline_internal.try_gate(p_gate => g.gate)
  ) as g;
  if v_gates is null and v_fair is null then
    return;
  end if;
  -- Read before this transaction has an id, so that whoever drew a lower number has a lower id.
  if pg_current_xact_id_if_assigned() is null then
    v_bound := coalesce(pg_sequence_last_value('trunkline_internal.job_sequence'::regclass), 0);
    select jsonb_object_agg(c.gate, c.lanes)
    into covered
    from (
      select g.gate, jsonb_object_agg(l.queue || '/' || l.lane, coalesce(w.sequence - 1, v_bound)) as lanes
      from unnest(v_gates) as g (gate)
      cross join lateral (
        select s.place from trunkline_internal.gate_states as s where s.gate = g.gate order by s.epoch desc limit 1
      ) as s
      cross join unnest(p_queues, p_lanes) as l (queue, lane)
      left join lateral (
        select w.sequence
        from trunkline_internal.waiting as w
        where w.gate = g.gate
          and w.queue = l.queue
          and w.lane = l.lane
          and w.state = 'ready'
          and w.sequence > trunkline_internal.position_floor(
            p_position => s.place, p_name => l.queue || '/' || l.lane, p_snapshot => p_snapshot
          )
        order by w.sequence
        limit 1
      ) as w on true
      where s.place is not null
      group by g.gate
    ) as c;
  end if;
  -- Where all of them went to wait for their other limits, those behind them are next.
  for v_round in 1..5 loop
    with gates as materialized (
      select
        g.gate, (g.state).place, g.requests, g.tokens, g.units, g.low_units, least(g.slots, p_limit) as slots,
        trunkline_internal.quota_part(p_unit => (g.allowed).quota_unit) as part, (g.allowed).quota_low_below * 2 as low_below
      from trunkline_internal.gate_room(p_gates => v_gates, p_limits => v_limits, p_now => p_now) as g
      where coalesce(g.slots, 1) > 0
        and coalesce(g.requests, 1) > 0
        and coalesce(g.tokens, 0) >= 0
        and coalesce(g.units, 1) > 0
        and g.held_until is null
    ),
    heads as materialized (
      select w.*, l.place, l.lane, g.slots, g.requests, g.tokens, g.units, g.low_units, g.part, g.low_below
      from unnest(p_queues, p_lanes) with ordinality as l (queue, lane, place)
      cross join gates as g
      cross join lateral (
        select w.ctid as tid, w.job_id, w.sequence, w.unique_key, w.payload_day, w.need, w.gate
        from trunkline_internal.waiting as w
        where w.gate = g.gate
          and w.queue = l.queue
          and w.lane = l.lane
          and w.state = 'ready'
          and w.sequence > case
            when g.place is null then 0
            else trunkline_internal.position_floor(p_position => g.place, p_name => l.queue || '/' || l.lane, p_snapshot => p_snapshot)
          end
          and (p_tasks is null or w.task = any(p_tasks))
          and (p_scope is null or w.tenant = p_scope)
        order by w.sequence
        limit g.slots
        for update of w skip locked
      ) as w
      limit p_limit
    )
    select array_agg(row(f.tid, f.job_id, f.place, f.sequence, f.unique_key, f.payload_day, f.need)::trunkline_internal.gated_job)
    into jobs
    from (
      select
        h.*,
        row_number() over before as taken,
        sum(h.need[1]) over before as requests_taken,
        sum(h.need[2]) over before as tokens_taken,
        sum(h.need[h.part]) over before as units_taken
      from heads as h
      window before as (partition by h.gate order by h.place, h.sequence rows unbounded preceding)
    ) as f
    where f.taken <= f.slots
      and (f.requests is null or f.requests_taken <= f.requests)
      and (f.tokens is null or f.tokens_taken <= f.tokens)
      and (f.units is null or f.units_taken <= case when f.lane < f.low_below then f.low_units else f.units end);
    if v_fair is not null then
      jobs := jobs || trunkline_internal.look_at_pools(
        p_queues => p_queues, p_lanes => p_lanes, p_limit => p_limit, p_tasks => p_tasks, p_scope => p_scope,
        p_now => p_now, p_gates => v_fair, p_limits => v_fair_limits
      );
    end if;
    exit when jobs is null or not exists (select from unnest(jobs) as f where cardinality(f.need) > 5);
    select f.jobs, f.moved
    into jobs, v_moved
    from trunkline_internal.fit_all_gates(p_found => jobs, p_lanes => p_lanes, p_now => p_now) as f;
    exit when jobs is not null or not v_moved;
  end loop;
end;
$$;
comment on function trunkline_internal.look_at_gates(text[], smallint[], integer, text[], text, timestamptz, pg_snapshot) is 'Finds limited jobs that may start now, locks them and their gates, and answers with them.';

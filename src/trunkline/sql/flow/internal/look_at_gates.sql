-- Finds limited jobs that may start now, locks them and their gates, and answers with them.
-- Waits for nobody: a gate that another claim holds, and rows that somebody holds, are skipped this time. The lock is
-- an advisory one, since a row's would be written to the log; it is taken in a statement of its own, because what was
-- read before it was taken may be old: two claims gave out a capacity of one.
-- Gates that are not known to be spent are walked in the order of their numbers, which are hashes, from a random one on;
-- a part of them at a time, until there are jobs enough: with a thousand keys few are needed, and to look at all of
-- them was most of the claim. Of such a part higher lanes go first, whatever their gates; within a lane gates in a
-- random order, each by sequence. Of a gate only what fits from its head: a large job is not overtaken by the small
-- ones behind it, or it would never start.
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
  -- Of so many gates jobs are taken in the order of their lanes; a claim that asks for many jobs looks at more.
  c_fewest_gates constant integer := 100;
  c_most_gates constant integer := 200;
  v_after bigint := ((random() - 0.5) * 18446744073709549568)::bigint;
  v_begin bigint := v_after;
  v_bound bigint;
  v_covered jsonb;
  v_fair bigint[];
  v_fair_limits integer[];
  v_found trunkline_internal.gated_job[];
  v_gates bigint[];
  v_limits integer[];
  v_looked integer := 0;
  v_moved boolean;
  v_part integer := least(c_most_gates, greatest(c_fewest_gates, p_limit / 8));
  v_rows integer;
  v_several boolean;
  v_wanted integer := p_limit;
  v_wrapped boolean := false;
begin
  loop
    select
      array_agg(g.gate), array_agg(g.limit_id), array_agg(g.gate) filter (where g.pool is not null), count(*)::integer,
      (array_agg(g.gate))[count(*)], (array_agg(g.wrapped))[count(*)]
    into v_gates, v_limits, v_fair, v_rows, v_after, v_wrapped
    from (
      select g.gate, l.limit_id, l.pool, g.wrapped
      from (
        (
          select g.gate, g.limit_id, v_wrapped as wrapped
          from trunkline_internal.gate_queues as g
          where g.gate > v_after and (g.gate <= v_begin or not v_wrapped) and g.queue = any(p_queues)
          order by g.gate
        )
        union all
        (
          select g.gate, g.limit_id, true
          from trunkline_internal.gate_queues as g
          where g.gate <= v_begin and not v_wrapped and g.queue = any(p_queues)
          order by g.gate
        )
      ) as g
      left join trunkline_internal.limits as o on o.gate = g.gate
      join trunkline_internal.limits as l on l.limit_id = coalesce(o.limit_id, g.limit_id)
      left join lateral (
        select s.free_at, s.reckoned_by, s.held_until, s.corrected_below, s.place
        from trunkline_internal.gate_states as s
        where s.gate = g.gate
        order by s.epoch desc
        limit 1
      ) as s on true
      where l.status = 'active'
        -- Gates stay listed for seconds after their last job. One that keeps a place is not asked: it would take the
        -- walk through its dead entries that the place is kept for.
        and (
          s.place is not null
          or exists (
            select
            from trunkline_internal.waiting as w
            where w.gate = g.gate and w.queue = any(p_queues) and w.state = 'ready'
          )
        )
        and (s.held_until is null or s.held_until <= p_now)
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
      limit v_part
    ) as g;
    exit when v_rows = 0;
    v_looked := v_looked + v_rows;
    select
      array_agg(g.gate) filter (where not g.fair), array_agg(g.limit_id) filter (where not g.fair),
      array_agg(g.gate) filter (where g.fair), array_agg(g.limit_id) filter (where g.fair)
    into v_gates, v_limits, v_fair, v_fair_limits
    from (
      select g.gate, g.limit_id, coalesce(g.gate = any(v_fair), false) as fair
      from (
        -- A gate has a row for each of its queues, and more where several opened it at once.
        select distinct g.gate, g.limit_id from unnest(v_gates, v_limits) as g (gate, limit_id)
      ) as g
      where trunkline_internal.try_gate(p_gate => g.gate)
      order by random()
    ) as g;
    if v_gates is not null or v_fair is not null then
      -- Read before this transaction has an id, so that whoever drew a lower number has a lower id.
      if pg_current_xact_id_if_assigned() is null then
        v_bound := coalesce(pg_sequence_last_value('trunkline_internal.job_sequence'::regclass), 0);
        select jsonb_object_agg(c.gate, c.lanes)
        into v_covered
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
        covered := coalesce(covered || v_covered, covered, v_covered);
      end if;
      -- Where all of them went to wait for their other limits, those behind them are next.
      for v_round in 1..5 loop
        with gates as materialized (
          select
            g.gate, (g.state).place, g.requests, g.tokens, g.units, g.low_units, least(g.slots, v_wanted) as slots,
            trunkline_internal.quota_part(p_unit => (g.allowed).quota_unit) as part, (g.allowed).quota_low_below * 2 as low_below,
            coalesce(g.slots, v_wanted) >= v_wanted and num_nonnulls(g.requests, g.tokens, g.units) = 0 as free
          from trunkline_internal.gate_room(p_gates => v_gates, p_limits => v_limits, p_now => p_now, p_wanted => v_wanted) as g
          where coalesce(g.slots, 1) > 0
            and coalesce(g.requests, 1) > 0
            and coalesce(g.tokens, 1) > 0
            and coalesce(g.units, 1) > 0
            and g.held_until is null
        ),
        heads as materialized (
          select w.*, l.place, l.lane, g.slots, g.requests, g.tokens, g.units, g.low_units, g.part, g.low_below, g.free
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
                else trunkline_internal.position_floor(
                  p_position => g.place, p_name => l.queue || '/' || l.lane, p_snapshot => p_snapshot
                )
              end
              and (p_tasks is null or w.task = any(p_tasks))
              and (p_scope is null or w.tenant = p_scope)
            order by w.sequence
            limit g.slots
            for update of w skip locked
          ) as w
          limit v_wanted
        ),
        -- Where everything fits, nobody needs to know what was taken before each.
        sums as materialized (
          select
            h.gate,
            count(*) <= coalesce(min(h.slots), count(*))
              and coalesce(sum(h.need[1]) <= min(h.requests), true)
              and coalesce(sum(h.need[2]) <= min(h.tokens), true)
              and min(h.units) is null as fits
          from heads as h
          where not h.free
          group by h.gate
        )
        select
          array_agg(row(f.tid, f.job_id, f.place, f.sequence, f.unique_key, f.payload_day, f.need)::trunkline_internal.gated_job),
          bool_or(cardinality(f.need) > 5)
        into v_found, v_several
        from (
          select h.tid, h.job_id, h.place, h.sequence, h.unique_key, h.payload_day, h.need
          from heads as h
          where h.free or h.gate = any(array(select s.gate from sums as s where s.fits))
          union all
          select f.tid, f.job_id, f.place, f.sequence, f.unique_key, f.payload_day, f.need
          from (
            select
              h.*,
              row_number() over before as taken,
              sum(h.need[1]) over before as requests_taken,
              sum(h.need[2]) over before as tokens_taken,
              sum(h.need[h.part]) over before as units_taken
            from heads as h
            where not h.free and h.gate = any(array(select s.gate from sums as s where not s.fits))
            window before as (partition by h.gate order by h.place, h.sequence rows unbounded preceding)
          ) as f
          where f.taken <= coalesce(f.slots, f.taken)
            and (f.requests is null or f.requests_taken <= f.requests)
            and (f.tokens is null or f.tokens_taken <= f.tokens)
            and (f.units is null or f.units_taken <= case when f.lane < f.low_below then f.low_units else f.units end)
        ) as f;
        if v_fair is not null then
          v_found := v_found || trunkline_internal.look_at_pools(
            p_queues => p_queues, p_lanes => p_lanes, p_limit => v_wanted, p_tasks => p_tasks, p_scope => p_scope,
            p_now => p_now, p_gates => v_fair, p_limits => v_fair_limits
          );
          v_several := exists (select from unnest(v_found) as f where cardinality(f.need) > 5);
        end if;
        exit when v_found is null or not v_several;
        select f.jobs, f.moved
        into v_found, v_moved
        from trunkline_internal.fit_all_gates(p_found => v_found, p_lanes => p_lanes, p_now => p_now) as f;
        exit when v_found is not null or not v_moved;
      end loop;
      jobs := jobs || v_found;
      v_wanted := p_limit - coalesce(cardinality(jobs), 0);
    end if;
    -- Who found nothing goes on for longer: it would go to sleep.
    exit when v_wanted <= 0 or v_rows < v_part or v_looked >= c_most_gates * case when jobs is null then 5 else 1 end;
  end loop;
end;
$$;
comment on function trunkline_internal.look_at_gates(text[], smallint[], integer, text[], text, timestamptz, pg_snapshot) is 'Finds limited jobs that may start now, locks them and their gates, and answers with them.';

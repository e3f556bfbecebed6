-- Finds and locks jobs of share groups that may start now: in each group, first those whose key runs least for its weight.
-- Among keys that run equally much, the one served longest ago goes first: with a single slot, no key runs while it is free,
-- and the key with the most jobs would always have the oldest one. Returns jobs in that order. Their sequence numbers are
-- exchanged within a share group and lane, so that the group stands among other jobs as if its jobs had come in this order.
-- A key with a cap gets no more than that while other keys of its group wait. Jobs of a key stay in their lane, whichever
-- other limit refuses them. The caller holds the buckets.
create or replace function trunkline_internal.select_fairly(
  p_queues text[],
  p_lanes smallint[],
  p_limit integer,
  p_tasks text[],
  p_scope text,
  p_now timestamptz,
  p_buckets bigint[],
  p_limits integer[],
  p_snapshot pg_snapshot
)
returns trunkline_internal.candidates
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
  v_found trunkline_internal.candidates;
begin
  with buckets as materialized (
    select
      g.bucket, (g.allowed).share_group, g.live, coalesce((g.allowed).weight, 1) as weight, (g.allowed).share_cap,
      coalesce((g.state).served, '0'::xid8) as served, (g.state).place,
      least(g.slots, p_limit) as slots
    from trunkline_internal.bucket_room(p_buckets => p_buckets, p_limits => p_limits, p_now => p_now) as g
    where coalesce(g.slots, 1) > 0 and g.paused_until is null
  ),
  -- Without locks: few of the rows that are read are taken.
  heads as materialized (
    select w.*, l.place, g.bucket, g.share_group, g.live, g.weight, g.share_cap, g.served, g.slots
    from unnest(p_queues, p_lanes) with ordinality as l (queue, lane, place)
    cross join buckets as g
    cross join lateral (
      select w.ctid as tid, w.sequence, cardinality(w.bucket_ids) > 1 as several
      from trunkline_internal.waiting as w
      where w.bucket = g.bucket
        and w.queue = l.queue
        and w.lane = l.lane
        and w.state = 'ready'
        and w.sequence > case
          when g.place is null then 0
          else trunkline_internal.position_floor(p_position => g.place, p_name => l.queue || '/' || l.lane, p_snapshot => p_snapshot)
        end
        and (p_tasks is null or w.task = any(p_tasks))
        and (p_scope is null or w.tenant = p_scope)
        and (w.expires_at is null or w.expires_at > p_now or w.attempt > 0)
      order by w.sequence
      limit g.slots
    ) as w
  ),
  turns as (
    select
      h.*,
      row_number() over (partition by h.bucket order by h.place, h.sequence) as taken,
      dense_rank() over (partition by h.share_group order by h.bucket)
        + dense_rank() over (partition by h.share_group order by h.bucket desc) - 1 as keys
    from heads as h
  ),
  ranked as (
    select
      t.*,
      row_number() over (
        partition by t.share_group, t.place order by (t.live + t.taken - 1)::numeric / t.weight, t.served, t.sequence
      ) as turn,
      row_number() over (partition by t.share_group, t.place order by t.sequence) as age
    from turns as t
    where (t.slots is null or t.taken <= t.slots)
      and (t.share_cap is null or t.keys = 1 or t.live + t.taken <= t.share_cap)
  ),
  chosen as materialized (
    select r.tid, r.place, o.sequence as ordering
    from ranked as r
    join ranked as o on o.share_group = r.share_group and o.place = r.place and o.age = r.turn
    order by r.place, o.sequence
    -- If another limit may refuse the first of them, a claim of one job must read further.
    limit case when (select bool_or(h.several) from heads as h) then greatest(p_limit, 200) else p_limit end
  ),
  locked as materialized (
    select w.ctid as tid, w.job_id, w.unique_key, w.payload_day
    from trunkline_internal.waiting as w
    where w.ctid = any(array(select c.tid from chosen as c)) and w.state = 'ready'
    for update of w skip locked
  )
  select
    array_agg(f.tid), array_agg(f.job_id), array_agg(f.place), array_agg(f.ordering),
    array_agg(f.job_id) filter (where f.unique_key is not null),
    min(f.payload_day), max(f.payload_day), 'exclusive'
  into
    v_found.tids, v_found.jobs, v_found.places, v_found.sequences,
    v_found.keyed,
    v_found.first_day, v_found.last_day, v_found.locking
  from (
    select l.tid, l.job_id, l.unique_key, l.payload_day, c.place, c.ordering
    from chosen as c
    join locked as l on l.tid = c.tid
    order by c.place, c.ordering
  ) as f;
  return v_found;
end;
$$;
comment on function trunkline_internal.select_fairly(text[], smallint[], integer, text[], text, timestamptz, bigint[], integer[], pg_snapshot) is 'Finds and locks jobs of share groups that may start now: in each group, first those whose key runs least for its weight.';

-- Finds and locks the first waiting jobs of buckets, at most p_slots of each: higher lanes first, then buckets in the order given.
-- Starts at the buckets' cursors. The result has charges if no job has a second limit and they are cheap to compute; without
-- p_sums, for buckets that count jobs only, they have no other amounts.
-- Guarded by tests/plans.
create or replace function trunkline_internal.lock_heads(
  p_buckets bigint[],
  p_limits integer[],
  p_slots bigint[],
  p_places jsonb[],
  p_sums boolean,
  p_queues text[],
  p_lanes smallint[],
  p_limit integer,
  p_tasks text[],
  p_scope text,
  p_snapshot pg_snapshot,
  p_now timestamptz
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
  v_first bigint;
  v_found trunkline_internal.candidates;
  v_buckets bigint[];
  v_last bigint;
  v_least bigint;
  v_most_limits integer;
  v_many boolean := cardinality(p_buckets) > 1;
  v_one boolean := cardinality(p_lanes) = 1;
  v_requests bigint;
  v_tokens bigint;
  v_units bigint;
begin
  -- In one statement: a second read of the jobs by bucket would take half as long again.
  select
    array_agg(h.tid), array_agg(h.job_id), array_agg(h.place), array_agg(h.sequence),
    array_agg(h.job_id) filter (where h.keyed),
    min(h.payload_day), max(h.payload_day),
    array_agg(h.bucket) filter (where v_many), min(h.bucket), max(h.bucket),
    min(h.requests), sum(h.requests)::bigint, sum(h.tokens)::bigint, sum(h.units)::bigint, max(h.limits)
  into
    v_found.tids, v_found.jobs, v_found.places, v_found.sequences,
    v_found.keyed,
    v_found.first_day, v_found.last_day,
    v_buckets, v_first, v_last,
    v_least, v_requests, v_tokens, v_units, v_most_limits
  from (
    -- By sequence, about as the rows lie in the table, because later steps fetch them one by one. With a single lane the
    -- sequence is the first sort key: a second key is extracted from the row again at each comparison.
    select h.*
    from (
      select w.tid, w.job_id, w.sequence, w.keyed, w.payload_day, w.limits, w.requests, w.tokens, w.units, l.place, g.bucket
      from unnest(p_queues, p_lanes) with ordinality as l (queue, lane, place)
      cross join lateral (
        -- Depends on the lane, or the planner might take the buckets one by one, each with all of its lanes.
        select g.bucket, g.slots, g.place
        from unnest(p_buckets, p_slots, p_places) as g (bucket, slots, place)
        where l.place is not null
        offset 0
      ) as g
      cross join lateral (
        -- As few columns as possible, because all of them are sorted.
        select
          w.ctid as tid, w.job_id, w.sequence, w.unique_key is not null as keyed, w.payload_day,
          cardinality(w.bucket_ids) as limits, case when p_sums then w.cost_requests end as requests,
          case when p_sums then w.cost_tokens end as tokens, case when p_sums then w.cost_units end as units
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
        limit least(g.slots, p_limit)
        for update of w skip locked
      ) as w
      limit p_limit
    ) as h
    order by case when v_one then h.sequence else h.place end, h.sequence
  ) as h;
  if v_most_limits > 1 then
    null;
  elsif v_first = v_last then
    v_found.charges := array[row(
      v_first, p_limits[array_position(p_buckets, v_first)], coalesce(v_requests, 0), coalesce(v_tokens, 0), coalesce(v_units, 0),
      v_found.jobs, cardinality(v_found.jobs)
    )::trunkline_internal.bucket_charge];
  -- Most limits with keys count jobs only.
  elsif not p_sums or (v_least = 1 and v_requests = cardinality(v_found.jobs) and v_tokens = 0 and v_units = 0) then
    select array_agg(
      row(
        c.bucket, p_limits[array_position(p_buckets, c.bucket)], p_sums::integer * cardinality(c.jobs), 0, 0, c.jobs, cardinality(c.jobs)
      )::trunkline_internal.bucket_charge
    )
    into v_found.charges
    from (
      select f.bucket, array_agg(f.job_id) as jobs
      from unnest(v_buckets, v_found.jobs) as f (bucket, job_id)
      group by f.bucket
      order by f.bucket
    ) as c;
  end if;
  v_found.others := 0;
  return v_found;
end;
$$;
comment on function trunkline_internal.lock_heads(bigint[], integer[], bigint[], jsonb[], boolean, text[], smallint[], integer, text[], text, pg_snapshot, timestamptz) is 'Finds and locks the first waiting jobs of buckets, at most p_slots of each: higher lanes first, then buckets in the order given.';

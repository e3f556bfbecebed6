-- Returns how buckets affect new jobs: the delay, the number of waiting jobs, and whether the quota is spent.
-- Returns only buckets whose limit has a rule for new jobs. Takes no lock. Waiting jobs are counted through indexes, up to
-- the depth limit: those in the bucket's lane, ready or scheduled, and ready ones in the lane of another of their limits.
-- (An index on second buckets would slow every enqueue by a fifth, even for jobs without limits.)
create or replace function trunkline_internal.bucket_pressure(p_buckets bigint[], p_limits integer[], p_now timestamptz)
returns table (
  bucket bigint,
  allowed trunkline_internal.limits,
  delay interval,
  waiting bigint,
  is_spent boolean,
  is_low_spent boolean
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_beside bigint[];
begin
  if exists (select from trunkline_internal.limits as l where l.limit_id = any(p_limits) and l.depth_limit is not null)
    and exists (select from trunkline_internal.tasks as t where cardinality(t.limits) > 1)
  then
    -- Skips buckets whose limit is only used alone: their jobs have no second bucket.
    v_beside := array(
      select distinct q.bucket
      from trunkline_internal.bucket_queues as q
      join trunkline_internal.limits as l on l.limit_id = q.limit_id
      where not exists (select from trunkline_internal.tasks as t where l.name = any(t.limits))
        or exists (select from trunkline_internal.tasks as t where l.name = any(t.limits) and cardinality(t.limits) > 1)
    );
  end if;
  return query
  select
    g.bucket,
    m,
    -- Multiplied instead of divided: a limit of zero has no share and defers no job.
    case
      when m.status <> 'active' then null
      when (m.requests_per_minute > 0 and (r.charged).requests_of_minute > m.backpressure_threshold * m.requests_per_minute)
        or (m.tokens_per_minute > 0 and (r.charged).tokens_of_minute > m.backpressure_threshold * m.tokens_per_minute)
      then coalesce(m.backpressure_delay, interval '5 seconds')
    end,
    d.waiting,
    coalesce(m.quota_refuses and r.units <= 0, false),
    coalesce(m.quota_refuses and r.low_units <= 0, false)
  from unnest(p_buckets, p_limits) as g (bucket, limit_id)
  join trunkline_internal.limits as m
    on m.limit_id = g.limit_id and num_nonnulls(m.backpressure_threshold, m.depth_limit, m.quota) > 0
  left join lateral (
    select count(*) as waiting
    from (
      (
        select
        from trunkline_internal.waiting as w
        where w.bucket = g.bucket and w.state = 'ready' and w.bucket is not null
        limit m.depth_limit
      )
      union all
      (
        select
        from trunkline_internal.waiting as w
        where w.bucket = g.bucket and w.state = 'scheduled' and w.bucket is not null
        limit m.depth_limit
      )
      union all
      (select from trunkline_internal.set_aside as a where a.bucket = g.bucket limit m.depth_limit)
      union all
      (
        select
        from unnest(v_beside) as b (bucket)
        cross join lateral (
          select
          from trunkline_internal.waiting as w
          where w.bucket = b.bucket and w.state = 'ready' and w.bucket is not null and w.bucket_ids @> array[g.bucket]
          limit m.depth_limit
        ) as w
        where b.bucket <> g.bucket
        limit m.depth_limit
      )
      limit m.depth_limit
    ) as w
    where m.depth_limit is not null
  ) as d on m.depth_limit is not null
  left join lateral (
    select r.charged, r.units, r.low_units
    from trunkline_internal.bucket_room(
      p_buckets => array[g.bucket], p_limits => array[g.limit_id], p_now => p_now, p_wanted => 0
    ) as r
    where (m.quota is not null and m.quota_refuses) or (m.backpressure_threshold is not null and m.status = 'active')
    -- Prevents the planner from flattening the subquery, which would compute it for limits that do not use it.
    offset 0
  ) as r on true;
end;
$$;
comment on function trunkline_internal.bucket_pressure(bigint[], integer[], timestamptz) is 'Returns how buckets affect new jobs: the delay, the number of waiting jobs, and whether the quota is spent.';

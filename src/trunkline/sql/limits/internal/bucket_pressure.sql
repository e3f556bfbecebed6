-- Tells what buckets have to say about new jobs: by how much these are put off, how many wait, and whether the quota is spent.
-- Only buckets whose limit says something about it are answered for. Reads without a lock: a minute's charges as the
-- newest state has them, with adjustments that are not part of it yet. Who waits is counted by indexes and only up to
-- the depth limit: in the bucket's lane, now or later, and ready in the lane of a limit that jobs have beside another one.
-- (An index of second buckets would make every enqueue slower by a fifth, also of jobs without limits.)
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
  v_second bigint := floor(extract(epoch from p_now))::bigint;
begin
  if exists (select from trunkline_internal.limits as l where l.limit_id = any(p_limits) and l.depth_limit is not null)
    and exists (select from trunkline_internal.tasks as t where cardinality(t.limits) > 1)
  then
    -- Not those that tasks have as their only one: their jobs wait for nothing else.
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
    -- As products: a limit of zero divides nothing, and puts nobody off.
    case
      when (m.requests_per_minute > 0 and c.requests > m.backpressure_threshold * m.requests_per_minute)
        or (m.tokens_per_minute > 0 and c.tokens > m.backpressure_threshold * m.tokens_per_minute)
      then coalesce(m.backpressure_delay, interval '5 seconds')
    end,
    d.waiting,
    coalesce(q.units <= 0, false),
    coalesce(q.low_units <= 0, false)
  from unnest(p_buckets, p_limits) as g (bucket, limit_id)
  join trunkline_internal.limits as m
    on m.limit_id = g.limit_id and num_nonnulls(m.backpressure_threshold, m.depth_limit, m.quota) > 0
  left join lateral (
    select sum(c.requests) as requests, sum(c.tokens) as tokens
    from (
      select c.at, c.requests, c.tokens
      from (
        select s.charged_at, s.charged_requests, s.charged_tokens
        from trunkline_internal.bucket_states as s
        where s.bucket = g.bucket
        order by s.revision desc
        limit 1
      ) as s
      cross join unnest(s.charged_at, s.charged_requests, s.charged_tokens) as c (at, requests, tokens)
      union all
      select c.at, c.requests, c.tokens
      from trunkline_internal.bucket_adjustments as c
      where c.bucket = g.bucket
        and c.xid >= coalesce((
          select s.adjusted_below from trunkline_internal.bucket_states as s where s.bucket = g.bucket order by s.revision desc limit 1
        ), '0'::xid8)
    ) as c
    where c.at > v_second - 60 and m.backpressure_threshold is not null and m.status = 'active'
  ) as c on true
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
    select r.units, r.low_units
    from trunkline_internal.bucket_room(p_buckets => array[g.bucket], p_limits => array[g.limit_id], p_now => p_now) as r
    where m.quota is not null and m.quota_refuses
    -- Apart, or it would be reckoned for limits without a quota too.
    offset 0
  ) as q on true;
end;
$$;
comment on function trunkline_internal.bucket_pressure(bigint[], integer[], timestamptz) is 'Tells what buckets have to say about new jobs: by how much these are put off, how many wait, and whether the quota is spent.';

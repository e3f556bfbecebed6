-- Finds the next buckets of the ring that may have a job to start, up to p_part of them, after p_after; wrapped: past the end of the numbers.
-- Buckets that are known to be spent or held are passed by, and so are those at which nobody waits: they stay listed for
-- seconds after their last job. Of limits that count a few slots alone nothing is asked but the list: whether somebody
-- waits, and who holds a slot, is seen by who takes the bucket, and asked here it was half of the look. p_certain asks all
-- the same, so that a look goes on over any number of buckets without jobs; last is the last of them that was looked at.
-- width is the least of what may be done with them: 2, they may be shared; 1, they are to be held when it is known what is
-- charged; 0, before anything is looked at. A bucket has a row for each of its queues, and more where several opened it at once.
create or replace function trunkline_internal.next_buckets(
  p_queues text[],
  p_lanes smallint[],
  p_limit integer,
  p_now timestamptz,
  p_snapshot pg_snapshot,
  p_eager boolean,
  p_begin bigint,
  p_after bigint,
  p_wrapped boolean,
  p_part integer,
  p_certain boolean,
  out buckets bigint[],
  out limits integer[],
  out fair bigint[],
  out places jsonb[],
  out listed integer,
  out last bigint,
  out wrapped boolean,
  out width integer,
  out amounts boolean,
  out plain boolean
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
  -- So many lines beside a state, and whoever comes next counts them in.
  c_lines constant integer := 8;
  v_second bigint := floor(extract(epoch from p_now))::bigint;
begin
  select
    array_agg(g.bucket), array_agg(g.limit_id), array_agg(g.bucket) filter (where g.share_group is not null), array_agg(g.place),
    count(*)::integer,
    (array_agg(g.bucket))[count(*)], (array_agg(g.wrapped))[count(*)], min(g.width), bool_or(g.amounts),
    bool_and(g.slots_only)
  into buckets, limits, fair, places, listed, last, wrapped, width, amounts, plain
  from (
    select
      g.bucket, l.limit_id, l.share_group, l.slots_only, s.place, g.wrapped,
      num_nonnulls(l.requests_per_minute, l.requests_per_hour, l.tokens_per_minute, l.tokens_per_hour, l.quota) > 0 as amounts,
      case
        when b.brief or not p_eager or num_nonnulls(l.share_group, l.quota, l.breaker_failures) > 0 then 0
        when l.concurrency < u.holders + 2 * p_limit then 0
        else least(
          case
            when u.lines >= c_lines or 16 * p_limit > least(l.concurrency, l.requests_per_minute, l.requests_per_hour) then 1
            when 2 * u.holders > l.concurrency then 1
            else 2
          end,
          case when num_nonnulls(l.requests_per_minute, l.requests_per_hour, l.tokens_per_minute, l.tokens_per_hour) > 0 then (
            -- Of tokens nobody knows yet how many they need.
            select case
              when c.requests_of_minute + 2 * p_limit > l.requests_per_minute
                or c.requests + 2 * p_limit > l.requests_per_hour
                or 2 * c.tokens_of_minute > l.tokens_per_minute
                or 2 * c.tokens > l.tokens_per_hour
              then 0
              when 2 * c.requests_of_minute > l.requests_per_minute or 2 * c.requests > l.requests_per_hour then 1
              else 2
            end
            from (
              select
                coalesce(sum(c.requests) filter (where c.at > v_second - 62), 0) as requests_of_minute,
                coalesce(sum(c.requests), 0) as requests,
                coalesce(sum(c.tokens) filter (where c.at > v_second - 62), 0) as tokens_of_minute,
                coalesce(sum(c.tokens), 0) as tokens
              from unnest(s.charged_at, s.charged_requests, s.charged_tokens) as c (at, requests, tokens)
            ) as c
          ) end
        )
      end as width
    from (
      (
        select g.bucket, g.limit_id, p_wrapped as wrapped
        from trunkline_internal.bucket_queues as g
        where g.bucket > p_after and (g.bucket <= p_begin or not p_wrapped) and g.queue = any(p_queues)
        order by g.bucket
      )
      union all
      (
        select g.bucket, g.limit_id, true
        from trunkline_internal.bucket_queues as g
        where g.bucket <= p_begin and not p_wrapped and g.queue = any(p_queues)
        order by g.bucket
      )
    ) as g
    left join trunkline_internal.limits as o on o.bucket = g.bucket
    join trunkline_internal.limits as l on l.limit_id = coalesce(o.limit_id, g.limit_id)
    cross join lateral (
      select l.slots_only and not p_certain and (l.concurrency < 2 * p_limit or not p_eager) as brief
      offset 0
    ) as b
    left join lateral (
      select s.*
      from trunkline_internal.bucket_states as s
      where not b.brief and s.bucket = g.bucket
      order by s.revision desc
      limit 1
    ) as s on true
    left join lateral (
      select count(*) as lines, coalesce(cardinality(s.holders), 0) + coalesce(sum(cardinality(c.holders)), 0) as holders
      from (
        select c.holders
        from trunkline_internal.bucket_adjustments as c
        where p_eager
          -- Where it is narrow anyway nobody need know.
          and (l.concurrency >= 2 * p_limit or l.concurrency is null)
          and c.bucket = g.bucket
          and c.xid >= coalesce(s.adjusted_below, '0'::xid8)
        limit c_lines
      ) as c
    ) as u on not b.brief
    where l.status = 'active'
      -- One that keeps a place is asked from there: before it are the dead entries that the place is kept for.
      and case
        when b.brief then true
        when s.place is null then exists (
          select
          from trunkline_internal.waiting as w
          where w.bucket = g.bucket and w.queue = any(p_queues) and w.state = 'ready'
        )
        else exists (
          select
          from unnest(p_queues, p_lanes) as n (queue, lane)
          cross join lateral (
            select
            from trunkline_internal.waiting as w
            where w.bucket = g.bucket
              and w.queue = n.queue
              and w.lane = n.lane
              and w.state = 'ready'
              and w.sequence > trunkline_internal.position_floor(
                p_position => s.place, p_name => n.queue || '/' || n.lane, p_snapshot => p_snapshot
              )
            limit 1
          ) as w
        )
      end
      and (s.paused_until is null or s.paused_until <= p_now)
      and (
        s.free_at is null
        or s.free_at <= p_now
        or s.computed_by < l.updated_at
        -- Something was given back since.
        or exists (
          select
          from trunkline_internal.bucket_adjustments as c
          where c.bucket = g.bucket and c.xid >= coalesce(s.adjusted_below, '0'::xid8)
        )
      )
    limit p_part
  ) as g;
end;
$$;
comment on function trunkline_internal.next_buckets(text[], smallint[], integer, timestamptz, pg_snapshot, boolean, bigint, bigint, boolean, integer, boolean) is 'Finds the next buckets of the ring that may have a job to start, up to p_part of them, after p_after; wrapped: past the end of the numbers.';

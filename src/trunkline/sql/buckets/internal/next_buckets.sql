-- Returns the next buckets after p_after that may have a job to start, at most p_part of them; wrapped is true past the last number.
-- Skips buckets that are known to be spent or paused, and buckets without waiting jobs, which stay listed for seconds after
-- their last job. For limits that count only a few slots it reads nothing but the list: the claim that locks the bucket
-- sees whether a job waits and which slots are taken, and reading that here was half of the scan. p_certain reads it all
-- the same, so that a scan continues over any number of buckets without jobs. last is the last bucket that was read.
-- locking is the strictest way in which one of them must be locked. It is an estimate of the bucket's width from the sums
-- of its state, without adjustments; take_limited computes the room exactly before anything is charged.
-- A bucket has a row for each of its queues, and more if several transactions opened it at once.
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
  out locking text,
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
  -- With so many adjustments outstanding, the next claim locks the bucket and adds them to its state.
  c_lines constant integer := 8;
  v_second bigint := floor(extract(epoch from p_now))::bigint;
begin
  select
    array_agg(g.bucket), array_agg(g.limit_id), array_agg(g.bucket) filter (where g.share_group is not null), array_agg(g.place),
    count(*)::integer,
    (array_agg(g.bucket))[count(*)], (array_agg(g.wrapped))[count(*)], min(g.locking)::text, bool_or(g.amounts),
    bool_and(g.slots_only)
  into buckets, limits, fair, places, listed, last, wrapped, locking, amounts, plain
  from (
    select
      g.bucket, l.limit_id, l.share_group, l.slots_only, s.place, g.wrapped,
      num_nonnulls(l.requests_per_minute, l.requests_per_hour, l.tokens_per_minute, l.tokens_per_hour, l.quota) > 0 as amounts,
      case
        when b.brief or not p_eager or num_nonnulls(l.share_group, l.quota, l.breaker_failures) > 0 then 'exclusive'
        when l.concurrency < u.holders + 2 * p_limit then 'exclusive'
        else least(
          case
            when u.lines >= c_lines or 16 * p_limit > least(l.concurrency, l.requests_per_minute, l.requests_per_hour) then 'deferred'
            when 2 * u.holders > l.concurrency then 'deferred'
            else 'shared'
          end::trunkline_internal.bucket_locking,
          case when num_nonnulls(l.requests_per_minute, l.requests_per_hour, l.tokens_per_minute, l.tokens_per_hour) > 0 then (
            -- The tokens that the jobs will cost are not known yet.
            select case
              when c.requests_of_minute + 2 * p_limit > l.requests_per_minute
                or c.requests + 2 * p_limit > l.requests_per_hour
                or 2 * c.tokens_of_minute > l.tokens_per_minute
                or 2 * c.tokens > l.tokens_per_hour
              then 'exclusive'
              when 2 * c.requests_of_minute > l.requests_per_minute or 2 * c.requests > l.requests_per_hour then 'deferred'
              else 'shared'
            end::trunkline_internal.bucket_locking
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
      end as locking
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
          -- Not needed if the limit is too narrow anyway.
          and (l.concurrency >= 2 * p_limit or l.concurrency is null)
          and c.bucket = g.bucket
          and c.xid >= coalesce(s.adjusted_below, '0'::xid8)
        limit c_lines
      ) as c
    ) as u on not b.brief
    where l.status = 'active'
      -- A bucket with a cursor is read from there: before it are the dead index entries that the cursor skips.
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
        -- An adjustment since may have freed something.
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
comment on function trunkline_internal.next_buckets(text[], smallint[], integer, timestamptz, pg_snapshot, boolean, bigint, bigint, boolean, integer, boolean) is 'Returns the next buckets after p_after that may have a job to start, at most p_part of them; wrapped is true past the last number.';

-- Returns the room of buckets: newest state, limit, and the requests, tokens, units and slots left; null means no bound.
-- This is the one definition of what a bucket has left. Claims, acquire, admission and explain call it; free_slots and the
-- view buckets repeat parts of it and are held equal by tests.
-- The caller holds the locks, or wants an estimate only. A slot counts as held while its holder is live. Adjustments that
-- are not part of the state yet are included. low_units is for priorities below quota_low_below; live is the number of
-- holders, where they are kept; an open breaker leaves no slot, a due one a single slot for its probe. charged is what the
-- windows count, spent what the quota counts.
-- Skips the liveness check if p_wanted slots are free even if every holder is still running: with wide limits that check
-- is most of the work. Then live is an upper bound, slots a lower bound, and living is null. Otherwise living lists the
-- holders.
create or replace function trunkline_internal.bucket_room(
  p_buckets bigint[],
  p_limits integer[],
  p_now timestamptz,
  p_wanted integer default null
)
returns table (
  bucket bigint,
  allowed trunkline_internal.limits,
  state trunkline_internal.bucket_states,
  requests bigint,
  tokens bigint,
  units bigint,
  low_units bigint,
  slots bigint,
  live bigint,
  living uuid[],
  paused_until timestamptz,
  charged trunkline_internal.window_sums,
  spent bigint
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
  c_slack constant integer := 2;
  v_second bigint := floor(extract(epoch from p_now))::bigint;
begin
  return query
  with buckets as materialized (
    select
      g.bucket, m, s.state, n.listed,
      case
        when n.listed = 0 or (m.share_group is null and p_wanted <= m.concurrency - n.listed) then null
        when n.listed = cardinality((s.state).holders) then (s.state).holders
        else (s.state).holders || array(
          select h.holder
          from trunkline_internal.bucket_adjustments as c
          cross join unnest(c.holders) as h (holder)
          where c.bucket = g.bucket and c.xid >= coalesce((s.state).adjusted_below, '0'::xid8)
        )
      end as holders
    from unnest(p_buckets, p_limits) as g (bucket, limit_id)
    join trunkline_internal.limits as m on m.limit_id = g.limit_id
    left join lateral (
      select s as state from trunkline_internal.bucket_states as s where s.bucket = g.bucket order by s.revision desc limit 1
    ) as s on true
    cross join lateral (
      select case when num_nonnulls(m.concurrency, m.share_group) > 0 then (
        select coalesce(sum(cardinality(c.holders)), 0)
        from trunkline_internal.bucket_adjustments as c
        where c.bucket = g.bucket and c.xid >= coalesce((s.state).adjusted_below, '0'::xid8) and c.holders is not null
      ) else 0 end + coalesce(cardinality((s.state).holders), 0) as listed
      -- The offset makes it computed once, here and below.
      offset 0
    ) as n
  ),
  alive as materialized (
    select trunkline_internal.live_holders(
      p_holders => array(select h.holder from buckets as g cross join unnest(g.holders) as h (holder)), p_now => p_now
    ) as holders
  )
  select
    g.bucket,
    g.m,
    g.state,
    least(
      (g.m).requests_per_minute - (c.sums).requests_of_minute, (g.m).requests_per_hour - (c.sums).requests_of_hour
    ),
    least((g.m).tokens_per_minute - (c.sums).tokens_of_minute, (g.m).tokens_per_hour - (c.sums).tokens_of_hour),
    floor((g.m).quota * (g.m).quota_buffer)::bigint - q.spent,
    floor((g.m).quota * least((g.m).quota_low_share, (g.m).quota_buffer))::bigint - q.spent,
    case
      when (g.m).breaker_failures is null then (g.m).concurrency - h.live
      else least((g.m).concurrency - h.live, trunkline_internal.breaker_room(p_bucket => g.bucket, p_now => p_now))
    end,
    h.live,
    h.living,
    case when (g.state).paused_until > p_now then (g.state).paused_until end,
    c.sums,
    q.spent
  from buckets as g
  cross join alive as a
  cross join lateral (
    select coalesce(cardinality(h.living), g.listed)::bigint as live, h.living
    from (
      select case
        when g.holders is null then null
        when cardinality(a.holders) = 0 then a.holders
        -- A holder that is listed twice counts once.
        else array(
          select distinct h.holder
          from unnest(g.holders) as h (holder)
          where (h.holder in (select h.holder from alive as a cross join unnest(a.holders) as h (holder))) is true
        )
      end as living
      offset 0
    ) as h
    offset 0
  ) as h
  cross join lateral (
    -- Not joined, so that limits without a window skip the sum.
    select case when num_nonnulls(
      (g.m).requests_per_minute, (g.m).requests_per_hour, (g.m).tokens_per_minute, (g.m).tokens_per_hour
    ) > 0 then (
      -- From the newest back, as in window_free_at: a refund offsets charges of its second or earlier. If the clock was set
      -- back and such a charge was dropped already, the refund does not open the window for others.
      select row(
        greatest(coalesce(max(c.requests) filter (where c.at > v_second - 62), 0), 0),
        greatest(coalesce(max(c.requests) filter (where c.at > v_second - 3602), 0), 0),
        greatest(coalesce(max(c.tokens) filter (where c.at > v_second - 62), 0), 0),
        greatest(coalesce(max(c.tokens) filter (where c.at > v_second - 3602), 0), 0)
      )::trunkline_internal.window_sums
      from (
        select
          c.at, sum(c.requests) over (order by c.at desc) as requests, sum(c.tokens) over (order by c.at desc) as tokens
        from (
          select c.at, c.requests, c.tokens
          from unnest((g.state).charged_at, (g.state).charged_requests, (g.state).charged_tokens) as c (at, requests, tokens)
          union all
          -- As charge_windows stores them: by the minute once past the minute, and no refund for a second in the future.
          select
            case when c.at - c.at % 60 + 59 <= v_second - 62 then c.at - c.at % 60 + 59 else c.at end,
            case when c.at > v_second + c_slack then greatest(c.requests, 0) else c.requests end,
            case when c.at > v_second + c_slack then greatest(c.tokens, 0) else c.tokens end
          from trunkline_internal.bucket_adjustments as c
          where c.bucket = g.bucket and c.xid >= coalesce((g.state).adjusted_below, '0'::xid8)
        ) as c
      ) as c
    ) end as sums
    offset 0
  ) as c
  cross join lateral (
    -- Not joined, so that limits without a quota skip it.
    select case when (g.m).quota is not null then (
      select
        trunkline_internal.quota_spent(p_limit => g.m, p_state => g.state, p_bucket => g.bucket, p_now => p_now)
        + coalesce(
          sum(trunkline_internal.amount_of(
            p_unit => (g.m).quota_unit, p_requests => c.requests, p_tokens => c.tokens, p_units => c.units
          )), 0
        )::bigint
      from trunkline_internal.bucket_adjustments as c
      where c.bucket = g.bucket
        and c.xid >= coalesce((g.state).adjusted_below, '0'::xid8)
        and c.at / 3600 >= trunkline_internal.quota_since(p_limit => g.m, p_now => p_now)
    ) end as spent
    offset 0
  ) as q;
end;
$$;
comment on function trunkline_internal.bucket_room(bigint[], integer[], timestamptz, integer) is 'Returns the room of buckets: newest state, limit, and the requests, tokens, units and slots left; null means no bound.';

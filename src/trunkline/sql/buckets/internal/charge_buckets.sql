-- Charges buckets with what a claim starts or a grant takes: writes the next revision of each and deletes the last one.
-- The caller holds the buckets. Adjustments that exist by now become part of the new revisions.
-- A bucket with much traffic keeps a cursor, up to which its lanes have no job: see next_cursor.
-- p_rooms is the room that the caller read after it had locked the buckets; null if it did not.
create or replace function trunkline_internal.charge_buckets(
  p_charges trunkline_internal.bucket_charge[],
  p_queues text[],
  p_lanes smallint[],
  p_bound bigint,
  p_rooms trunkline_internal.room[],
  p_snapshot pg_snapshot,
  p_now timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  -- From so many jobs of one bucket in a claim on, a cursor pays.
  c_busy constant integer := 20;
  -- Up to so many holders, or so many times the new ones, are kept without a liveness check.
  c_unasked constant integer := 400;
  c_unasked_times constant integer := 2;
  -- Read before the adjustments: transactions below it have ended, so their rows are visible.
  v_below xid8 := pg_snapshot_xmin(pg_current_snapshot());
  v_hour bigint := floor(extract(epoch from p_now) / 3600)::bigint;
  v_last tid[];
  v_probes bigint[];
  v_probing uuid[];
begin
  if not exists (
    select
    from unnest(p_charges) as c
    join trunkline_internal.limits as l on l.limit_id = c.limit_id
    where not l.slots_only
  ) then
    perform trunkline_internal.charge_slots(
      p_charges => p_charges, p_queues => p_queues, p_lanes => p_lanes, p_bound => p_bound, p_rooms => p_rooms,
      p_snapshot => p_snapshot, p_now => p_now
    );
    return;
  end if;
  with charged as materialized (
    select
      u.bucket, u.holders, u.starts, m, q.amount, r.living, s.tid,
      case when num_nonnulls(m.concurrency, m.share_group) > 0 then (s.state).holders || array(
        select h.holder
        from trunkline_internal.bucket_adjustments as c
        cross join unnest(c.holders) as h (holder)
        where c.bucket = u.bucket and c.xid >= coalesce((s.state).adjusted_below, '0'::xid8) and c.xid < v_below
      ) end as listed,
      case when m.quota is not null then q.amount + q.corrected + trunkline_internal.quota_spent(
        p_limit => m, p_state => s.state, p_bucket => u.bucket, p_now => p_now
      ) end as spent,
      case
        when num_nonnulls(m.requests_per_minute, m.requests_per_hour, m.tokens_per_minute, m.tokens_per_hour) = 0 then s.state
        else trunkline_internal.charge_windows(
          p_limit => m, p_state => s.state, p_bucket => u.bucket, p_requests => u.requests, p_tokens => u.tokens, p_now => p_now,
          p_below => v_below
        )
      end as state
    from unnest(p_charges) as u
    join trunkline_internal.limits as m on m.limit_id = u.limit_id
    left join unnest(p_rooms) as r on r.bucket = u.bucket
    left join lateral (
      select s as state, s.ctid as tid from trunkline_internal.bucket_states as s where s.bucket = u.bucket order by s.revision desc limit 1
    ) as s on true
    left join lateral (
      select
        trunkline_internal.amount_of(
          p_unit => m.quota_unit, p_requests => u.requests, p_tokens => u.tokens, p_units => u.units
        ) as amount,
        coalesce(sum(trunkline_internal.amount_of(
          p_unit => m.quota_unit, p_requests => c.requests, p_tokens => c.tokens, p_units => c.units
        )) filter (
          where c.at / 3600 >= trunkline_internal.quota_since(p_limit => m, p_now => p_now)
        ), 0)::bigint as corrected
      from trunkline_internal.bucket_adjustments as c
      where m.quota is not null and c.bucket = u.bucket and c.xid >= coalesce((s.state).adjusted_below, '0'::xid8) and c.xid < v_below
    ) as q on m.quota is not null
  ),
  counted as (
    insert into trunkline_internal.quota_hours (bucket, hour, amount)
    select c.bucket, v_hour, c.amount from charged as c where c.amount > 0
    union all
    select
      c.bucket, o.at / 3600,
      sum(trunkline_internal.amount_of(
        p_unit => (c.m).quota_unit, p_requests => o.requests, p_tokens => o.tokens, p_units => o.units
      ))::bigint
    from charged as c
    join trunkline_internal.bucket_adjustments as o
      on o.bucket = c.bucket and o.xid >= coalesce((c.state).adjusted_below, '0'::xid8) and o.xid < v_below
    where (c.m).quota is not null
    group by c.bucket, o.at / 3600
  ),
  written as (
    insert into trunkline_internal.bucket_states (
      bucket, revision, free_at, computed_by, holders, charged_at, charged_requests, charged_tokens, place,
      paused_until, pause_reason, spent, spent_hour, adjusted_below, refused, refused_at, started_at, started, served
    )
    select
      c.bucket,
      coalesce((c.state).revision, 0) + 1,
      nullif(
        greatest(
          case
            when num_nonnulls(
              (c.m).requests_per_minute, (c.m).requests_per_hour, (c.m).tokens_per_minute, (c.m).tokens_per_hour
            ) > 0 then trunkline_internal.window_free_at(p_limit => c.m, p_state => c.state, p_requests => 1, p_tokens => 1)
          end,
          -- A quota rolls by the hour.
          case when c.spent >= floor((c.m).quota * (c.m).quota_buffer) then to_timestamp((v_hour + 1) * 3600.0) end
        ),
        '-infinity'::timestamptz
      ),
      (c.m).updated_at,
      case
        when num_nonnulls((c.m).concurrency, (c.m).share_group) = 0 then null
        -- Some may have ended or be listed twice. bucket_room counts live ones once.
        when cardinality(c.listed) + cardinality(c.holders)
          <= least((c.m).concurrency, greatest(c_unasked, c_unasked_times * cardinality(c.holders))) then c.listed || c.holders
        -- Reading the room has checked them where it mattered.
        when c.living is not null then c.living || c.holders
        else trunkline_internal.live_holders(p_holders => c.listed, p_now => p_now) || c.holders
      end,
      (c.state).charged_at, (c.state).charged_requests, (c.state).charged_tokens,
      case
        when (c.state).place is null and cardinality(c.holders) >= c_busy then '{}'::jsonb
        when (c.state).place is not null then trunkline_internal.next_cursor(
          p_bucket => c.bucket, p_place => (c.state).place, p_queues => p_queues, p_lanes => p_lanes, p_bound => p_bound,
          p_snapshot => p_snapshot, p_now => p_now
        )
      end,
      case when (c.state).paused_until > p_now then (c.state).paused_until end,
      case when (c.state).paused_until > p_now then (c.state).pause_reason end,
      c.spent,
      case when c.spent is not null then v_hour end,
      v_below,
      (c.state).refused, (c.state).refused_at,
      b.minutes, b.starts,
      case when (c.m).share_group is not null then pg_current_xact_id() end
    from charged as c
    left join lateral (
      select array_agg(b.minute) as minutes, array_agg(b.starts) as starts
      from (
        select b.minute, sum(b.starts)::bigint as starts
        from (
          select b.minute, b.starts
          from unnest((c.state).started_at, (c.state).started) as b (minute, starts)
          where b.minute >= floor(extract(epoch from p_now - (c.m).breaker_window) / 60)
          union all
          select floor(extract(epoch from p_now) / 60)::bigint, c.starts
        ) as b
        -- Inside the case, so that it is not computed for every bucket.
        where (c.m).breaker_failures is not null
        group by b.minute
        order by b.minute
      ) as b
    ) as b on true
    returning bucket, started_at
  )
  select
    array(select c.tid from charged as c where c.tid is not null),
    array_agg(w.bucket) filter (where w.started_at is not null),
    array_agg((select c.holders[1] from charged as c where c.bucket = w.bucket)) filter (where w.started_at is not null)
  into v_last, v_probes, v_probing
  from written as w;
  delete from trunkline_internal.bucket_states as s where s.ctid = any(v_last);
  if v_probes is not null then
    perform trunkline_internal.begin_probes(p_buckets => v_probes, p_jobs => v_probing, p_now => p_now);
  end if;
end;
$$;
comment on function trunkline_internal.charge_buckets(trunkline_internal.bucket_charge[], text[], smallint[], bigint, trunkline_internal.room[], pg_snapshot, timestamptz) is 'Charges buckets with what a claim starts or a grant takes: writes the next revision of each and deletes the last one.';

-- Charges buckets whose limits count slots only: the same as charge_buckets, in half the time.
-- Most limits with keys are like that, and a claim of a thousand jobs may charge two hundred of them.
create or replace function trunkline_internal.charge_slots(
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
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
  c_busy constant integer := 20;
  c_unasked constant integer := 400;
  c_unasked_times constant integer := 2;
  -- Read before the adjustments: transactions below it have ended, so their rows are visible.
  v_below xid8 := pg_snapshot_xmin(pg_current_snapshot());
  v_last tid[];
begin
  with charged as materialized (
    select
      c.bucket, c.holders, r.living, l.concurrency, l.updated_at,
      s.tid, s.revision, s.charged_at, s.charged_requests, s.charged_tokens, s.place, s.refused, s.refused_at,
      case when s.paused_until > p_now then s.paused_until end as paused_until,
      case when s.paused_until > p_now then s.pause_reason end as pause_reason,
      s.holders || array(
        select h.holder
        from trunkline_internal.bucket_adjustments as o
        cross join unnest(o.holders) as h (holder)
        where o.bucket = c.bucket and o.xid >= coalesce(s.adjusted_below, '0'::xid8) and o.xid < v_below
      ) as listed
    from unnest(p_charges) as c
    join trunkline_internal.limits as l on l.limit_id = c.limit_id
    left join unnest(p_rooms) as r on r.bucket = c.bucket
    left join lateral (
      select s.ctid as tid, s.*
      from trunkline_internal.bucket_states as s
      where s.bucket = c.bucket
      order by s.revision desc
      limit 1
    ) as s on true
  ),
  written as (
    insert into trunkline_internal.bucket_states (
      bucket, revision, computed_by, holders, charged_at, charged_requests, charged_tokens, place,
      paused_until, pause_reason, adjusted_below, refused, refused_at
    )
    select
      c.bucket, coalesce(c.revision, 0) + 1, c.updated_at,
      case
        -- Some may have ended or be listed twice. free_slots counts live ones once.
        when cardinality(c.listed) + cardinality(c.holders)
          <= least(c.concurrency, greatest(c_unasked, c_unasked_times * cardinality(c.holders))) then c.listed || c.holders
        -- Reading the room has checked them where it mattered.
        when c.living is not null then c.living || c.holders
        else trunkline_internal.live_holders(p_holders => c.listed, p_now => p_now) || c.holders
      end,
      c.charged_at, c.charged_requests, c.charged_tokens,
      case
        when c.place is null and cardinality(c.holders) >= c_busy then '{}'::jsonb
        when c.place is not null then trunkline_internal.next_cursor(
          p_bucket => c.bucket, p_place => c.place, p_queues => p_queues, p_lanes => p_lanes, p_bound => p_bound,
          p_snapshot => p_snapshot, p_now => p_now
        )
      end,
      c.paused_until, c.pause_reason, v_below, c.refused, c.refused_at
    from charged as c
  )
  select array_agg(c.tid) into v_last from charged as c where c.tid is not null;
  delete from trunkline_internal.bucket_states as s where s.ctid = any(v_last);
end;
$$;
comment on function trunkline_internal.charge_slots(trunkline_internal.bucket_charge[], text[], smallint[], bigint, trunkline_internal.room[], pg_snapshot, timestamptz) is 'Charges buckets whose limits count slots only: the same as charge_buckets, in half the time.';

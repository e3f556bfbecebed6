-- Returns the room of buckets whose limits count slots only; leaves out full and paused ones. The caller holds the buckets.
-- The same as bucket_room returns for them, in a third of the time: most limits with keys are like that, and a claim of a
-- thousand jobs reads a hundred of them.
create or replace function trunkline_internal.free_slots(
  p_buckets bigint[],
  p_limits integer[],
  p_wanted integer,
  p_now timestamptz,
  out buckets bigint[],
  out limits integer[],
  out slots bigint[],
  out places jsonb[],
  out rooms trunkline_internal.room[]
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
begin
  with listed as materialized (
    select g.bucket, g.nr, m.limit_id, m.concurrency, s.place, s.holders || c.holders as holders
    from unnest(p_buckets, p_limits) with ordinality as g (bucket, limit_id, nr)
    join trunkline_internal.limits as m on m.limit_id = g.limit_id
    left join lateral (
      select s.holders, s.place, s.paused_until, s.adjusted_below
      from trunkline_internal.bucket_states as s
      where s.bucket = g.bucket
      order by s.revision desc
      limit 1
    ) as s on true
    cross join lateral (
      select array(
        select h.holder
        from trunkline_internal.bucket_adjustments as c
        cross join unnest(c.holders) as h (holder)
        where c.bucket = g.bucket and c.xid >= coalesce(s.adjusted_below, '0'::xid8)
      ) as holders
    ) as c
    where s.paused_until is null or s.paused_until <= p_now
  ),
  alive as materialized (
    select trunkline_internal.live_holders(
      p_holders => array(
        select h.holder
        from listed as l
        cross join unnest(l.holders) as h (holder)
        -- Skip the liveness check if enough slots are free even if every holder is still running.
        where cardinality(l.holders) + p_wanted > l.concurrency
      ),
      p_now => p_now
    ) as holders
  )
  select
    array_agg(l.bucket), array_agg(l.limit_id), array_agg(l.slots), array_agg(l.place),
    array_agg(row(l.bucket, null, null, null, null, l.slots, null, null, l.living)::trunkline_internal.room)
  into buckets, limits, slots, places, rooms
  from (
    select
      l.bucket, l.limit_id, l.place, l.living,
      (l.concurrency - coalesce(cardinality(l.living), cardinality(l.holders)))::bigint as slots
    from (
      select
        l.*,
        case
          when cardinality(l.holders) + p_wanted <= l.concurrency then null
          when cardinality(a.holders) = 0 then a.holders
          else array(
            select distinct h.holder
            from unnest(l.holders) as h (holder)
            where (h.holder in (select h.holder from alive as a cross join unnest(a.holders) as h (holder))) is true
          )
        end as living
      from listed as l
      cross join alive as a
      order by l.nr
    ) as l
  ) as l
  where l.slots > 0;
end;
$$;
comment on function trunkline_internal.free_slots(bigint[], integer[], integer, timestamptz) is 'Returns the room of buckets whose limits count slots only; leaves out full and paused ones. The caller holds the buckets.';

-- Adds up what the limited ones of found jobs take of their buckets, in the order of the buckets.
create or replace function trunkline_internal.sum_charges(p_found trunkline_internal.candidates)
returns trunkline_internal.bucket_charge[]
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_charges trunkline_internal.bucket_charge[];
  v_several boolean;
begin
  if p_found.charges is not null then
    return p_found.charges;
  end if;
  select
    array_agg(
      row(c.bucket, coalesce(o.limit_id, c.limit_id), c.requests, c.tokens, c.units, c.holders, c.starts)::trunkline_internal.bucket_charge
    ),
    bool_or(c.several)
  into v_charges, v_several
  from (
    select
      w.need[5] as bucket, max(w.need[4])::integer as limit_id, sum(w.need[1])::bigint as requests, sum(w.need[2])::bigint as tokens,
      sum(w.need[3])::bigint as units, array_agg(w.job_id) as holders, count(*)::integer as starts, max(cardinality(w.need)) > 5 as several
    from unnest(p_found.tids) as f (tid)
    join trunkline_internal.waiting as w on w.ctid = f.tid
    where w.need is not null
    group by w.need[5]
    order by w.need[5]
  ) as c
  left join trunkline_internal.limits as o on o.bucket = c.bucket;
  -- Most jobs have one bucket.
  if v_several then
    select array_agg(
      row(c.bucket, coalesce(o.limit_id, c.limit_id), c.requests, c.tokens, c.units, c.holders, c.starts)::trunkline_internal.bucket_charge
    )
    into v_charges
    from (
      select
        w.need[i.place + 1] as bucket, max(w.need[i.place])::integer as limit_id, sum(w.need[1])::bigint as requests,
        sum(w.need[2])::bigint as tokens, sum(w.need[3])::bigint as units, array_agg(w.job_id) as holders, count(*)::integer as starts
      from unnest(p_found.tids) as f (tid)
      join trunkline_internal.waiting as w on w.ctid = f.tid
      cross join lateral generate_series(4, cardinality(w.need), 2) as i (place)
      group by w.need[i.place + 1]
      order by w.need[i.place + 1]
    ) as c
    left join trunkline_internal.limits as o on o.bucket = c.bucket;
  end if;
  return v_charges;
end;
$$;
comment on function trunkline_internal.sum_charges(trunkline_internal.candidates) is 'Adds up what the limited ones of found jobs take of their buckets, in the order of the buckets.';

-- Adds up the charges of candidates by bucket, in the order of the buckets.
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
      w.bucket_ids[1] as bucket, max(w.limit_ids[1]) as limit_id, sum(w.cost_requests)::bigint as requests,
      sum(w.cost_tokens)::bigint as tokens, sum(w.cost_units)::bigint as units, array_agg(w.job_id) as holders,
      count(*)::integer as starts, max(cardinality(w.bucket_ids)) > 1 as several
    from unnest(p_found.tids) as f (tid)
    join trunkline_internal.waiting as w on w.ctid = f.tid
    where w.bucket_ids is not null
    group by w.bucket_ids[1]
    order by w.bucket_ids[1]
  ) as c
  left join trunkline_internal.limits as o on o.bucket = c.bucket;
  -- Most jobs have one limit.
  if v_several then
    select array_agg(
      row(c.bucket, coalesce(o.limit_id, c.limit_id), c.requests, c.tokens, c.units, c.holders, c.starts)::trunkline_internal.bucket_charge
    )
    into v_charges
    from (
      select
        i.bucket, max(i.limit_id) as limit_id, sum(w.cost_requests)::bigint as requests, sum(w.cost_tokens)::bigint as tokens,
        sum(w.cost_units)::bigint as units, array_agg(w.job_id) as holders, count(*)::integer as starts
      from unnest(p_found.tids) as f (tid)
      join trunkline_internal.waiting as w on w.ctid = f.tid
      cross join lateral unnest(w.limit_ids, w.bucket_ids) as i (limit_id, bucket)
      group by i.bucket
      order by i.bucket
    ) as c
    left join trunkline_internal.limits as o on o.bucket = c.bucket;
  end if;
  return v_charges;
end;
$$;
comment on function trunkline_internal.sum_charges(trunkline_internal.candidates) is 'Adds up the charges of candidates by bucket, in the order of the buckets.';

-- Returns the limits of a job that have a quota, without the bucket that is asked for: two parallel arrays, null if there are none.
create or replace function trunkline_internal.other_quotas(
  p_limits integer[],
  p_buckets bigint[],
  p_bucket bigint,
  out limit_ids integer[],
  out bucket_ids bigint[]
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  -- Most jobs have one limit.
  if cardinality(p_buckets) > 1 then
    select array_agg(l.limit_id order by i.place), array_agg(i.bucket order by i.place)
    into limit_ids, bucket_ids
    from unnest(p_limits, p_buckets) with ordinality as i (limit_id, bucket, place)
    join trunkline_internal.limits as l
      on l.limit_id = trunkline_internal.limit_of(p_bucket => i.bucket, p_limit => i.limit_id)
    where i.bucket <> p_bucket and l.quota is not null;
  end if;
end;
$$;
comment on function trunkline_internal.other_quotas(integer[], bigint[], bigint) is 'Returns the limits of a job that have a quota, without the bucket that is asked for: two parallel arrays, null if there are none.';

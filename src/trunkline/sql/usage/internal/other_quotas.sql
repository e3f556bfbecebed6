-- Gives the limits of a job that have a quota, without the one that is asked for: {limit, bucket, limit, bucket ...}; null: none.
create or replace function trunkline_internal.other_quotas(p_need bigint[], p_bucket bigint)
returns bigint[]
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_beside bigint[];
begin
  -- Most jobs have one limit.
  if cardinality(p_need) > 5 then
    select array_agg(b.number order by i.place, b.nr)
    into v_beside
    from generate_series(4, cardinality(p_need), 2) as i (place)
    join trunkline_internal.limits as l
      on l.limit_id = trunkline_internal.limit_of(p_bucket => p_need[i.place + 1], p_limit => p_need[i.place]::integer)
    cross join lateral (values (1, l.limit_id::bigint), (2, p_need[i.place + 1])) as b (nr, number)
    where p_need[i.place + 1] <> p_bucket and l.quota is not null;
  end if;
  return v_beside;
end;
$$;
comment on function trunkline_internal.other_quotas(bigint[], bigint) is 'Gives the limits of a job that have a quota, without the one that is asked for: {limit, bucket, limit, bucket ...}; null: none.';

-- Names the breakers that hold a limited job back, one row each, and when the next probe of an open one is due.
create or replace function trunkline_internal.explain_breakers(p_need bigint[])
returns setof trunkline.explanation
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := trunkline.clock();
begin
  return query
  select
    'breaker',
    b.probe_at,
    jsonb_strip_nulls(jsonb_build_object(
      'breaker', n.name, 'state', b.state, 'since', b.opened_at, 'failures', b.failures, 'reason', b.reason
    ))
  from generate_series(4, cardinality(p_need), 2) as i (place)
  join trunkline_internal.breakers as b on b.bucket = p_need[i.place + 1]
  join trunkline_internal.limits as m
    on m.limit_id = trunkline_internal.limit_of(p_bucket => b.bucket, p_limit => p_need[i.place]::integer)
  cross join lateral (
    select n.name from trunkline_internal.bucket_names as n where n.bucket = b.bucket order by n.limit_id desc limit 1
  ) as n
  where m.breaker_failures is not null
    and trunkline_internal.breaker_room(p_bucket => b.bucket, p_now => v_now) = 0
  order by n.name;
end;
$$;
comment on function trunkline_internal.explain_breakers(bigint[]) is 'Names the breakers that hold a limited job back, one row each, and when the next probe of an open one is due.';

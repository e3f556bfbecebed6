-- Explains which breakers hold back a limited job, one row each, and when the next probe of an open one is due.
create or replace function trunkline_internal.explain_breakers(p_cost trunkline_internal.job_cost)
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
  from unnest(p_cost.limit_ids, p_cost.bucket_ids) as i (limit_id, bucket)
  join trunkline_internal.breakers as b on b.bucket = i.bucket
  join trunkline_internal.limits as m
    on m.limit_id = trunkline_internal.limit_of(p_bucket => b.bucket, p_limit => i.limit_id)
  cross join lateral (
    select n.name from trunkline_internal.bucket_names as n where n.bucket = b.bucket order by n.limit_id desc limit 1
  ) as n
  where m.breaker_failures is not null
    and trunkline_internal.breaker_room(p_bucket => b.bucket, p_now => v_now) = 0
  order by n.name;
end;
$$;
comment on function trunkline_internal.explain_breakers(trunkline_internal.job_cost) is 'Explains which breakers hold back a limited job, one row each, and when the next probe of an open one is due.';

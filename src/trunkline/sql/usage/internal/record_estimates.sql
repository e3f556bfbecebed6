-- Books what ended attempts were charged for tokens and units, unless they have settled: what nobody corrected counts as used.
create or replace function trunkline_internal.record_estimates(p_ended trunkline_internal.costly_attempt[], p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into trunkline_internal.usage (
    at, job_id, attempt, bucket, limit_id, task, tenant, requests, tokens, units, cost
  )
  select
    p_now, e.job_id, e.attempt, e.need[i.place + 1],
    trunkline_internal.limit_of(p_bucket => e.need[i.place + 1], p_limit => e.need[i.place]::integer),
    e.task, e.tenant, e.need[1], e.need[2], e.need[3], 0
  from unnest(p_ended) as e
  cross join lateral generate_series(4, cardinality(e.need), 2) as i (place)
  order by e.job_id, e.need[i.place + 1]
  on conflict (job_id, attempt, bucket) where grant_id is null do nothing;
end;
$$;
comment on function trunkline_internal.record_estimates(trunkline_internal.costly_attempt[], timestamptz) is 'Books what ended attempts were charged for tokens and units, unless they have settled: what nobody corrected counts as used.';

-- Records the charges of ended attempts in the usage ledger as used, unless they were settled.
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
    p_now, e.job_id, e.attempt, i.bucket,
    trunkline_internal.limit_of(p_bucket => i.bucket, p_limit => i.limit_id),
    e.task, e.tenant, e.cost_requests, e.cost_tokens, e.cost_units, 0
  from unnest(p_ended) as e
  cross join lateral unnest(e.limit_ids, e.bucket_ids) as i (limit_id, bucket)
  order by e.job_id, i.bucket
  on conflict (job_id, attempt, bucket) where grant_id is null do nothing;
end;
$$;
comment on function trunkline_internal.record_estimates(trunkline_internal.costly_attempt[], timestamptz) is 'Records the charges of ended attempts in the usage ledger as used, unless they were settled.';

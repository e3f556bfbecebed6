-- Takes over what a running job's claim has charged to buckets, once each; returns the buckets whose charge was still there.
-- A row of zeros in the usage ledger records it; the caller settles the charge. Rows are added in the order of the buckets,
-- as everywhere.
create or replace function trunkline_internal.take_claim_charges(
  p_job trunkline_internal.running,
  p_buckets bigint[],
  p_now timestamptz
)
returns bigint[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_taken bigint[];
begin
  with taken as (
    insert into trunkline_internal.usage (
      at, job_id, attempt, bucket, limit_id, task, tenant, requests, tokens, units, cost
    )
    select
      p_now, p_job.job_id, p_job.attempt, i.bucket,
      trunkline_internal.limit_of(p_bucket => i.bucket, p_limit => i.limit_id),
      p_job.task, p_job.tenant, 0, 0, 0, 0
    from unnest(p_job.limit_ids, p_job.bucket_ids) as i (limit_id, bucket)
    where i.bucket = any(p_buckets)
    order by i.bucket
    on conflict (job_id, attempt, bucket) where grant_id is null do nothing
    returning bucket
  )
  select coalesce(array_agg(t.bucket), '{}') into v_taken from taken as t;
  return v_taken;
end;
$$;
comment on function trunkline_internal.take_claim_charges(trunkline_internal.running, bigint[], timestamptz) is 'Takes over what a running job''s claim has charged to buckets, once each; returns the buckets whose charge was still there.';

-- Takes over what a job's claim has charged for a call of its handler, and charges the call to quotas of its other limits.
-- p_bucket is the bucket of which the caller has used the claim's charge; null if it did not. If the claim's charge to a quota
-- is still there, the call takes it and only the difference is recorded. Waits for no bucket: adjustments need no lock.
create or replace function trunkline_internal.charge_other_quotas(
  p_job trunkline_internal.running,
  p_bucket bigint,
  p_other_limits integer[],
  p_other_buckets bigint[],
  p_cost trunkline_internal.amounts,
  p_charged bigint,
  p_now timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_claimed bigint := floor(extract(epoch from p_job.claimed_at))::bigint;
  v_quota record;
  v_taken bigint[];
begin
  v_taken := trunkline_internal.take_claim_charges(
    p_job => p_job,
    p_buckets => p_bucket || p_other_buckets,
    p_now => p_now
  );
  -- Settled or ended since the caller read it: the claim's charge was not available.
  if p_bucket is not null and p_bucket <> all(v_taken) then
    perform trunkline_internal.adjust_bucket(
      p_bucket => p_bucket, p_at => v_claimed, p_requests => p_job.cost_requests, p_tokens => p_job.cost_tokens,
      p_units => p_job.cost_units
    );
  end if;
  for v_quota in
    select o.limit_id, o.bucket from unnest(p_other_limits, p_other_buckets) as o (limit_id, bucket)
  loop
    perform trunkline_internal.adjust_quota(
      p_bucket => v_quota.bucket, p_limit => v_quota.limit_id,
      p_at => case when v_quota.bucket = any(v_taken) then v_claimed else p_charged end,
      p_before => case
        when v_quota.bucket = any(v_taken)
          then row(p_job.cost_requests, p_job.cost_tokens, p_job.cost_units)::trunkline_internal.amounts
        else row(0, 0, 0)::trunkline_internal.amounts
      end,
      p_after => p_cost
    );
  end loop;
end;
$$;
comment on function trunkline_internal.charge_other_quotas(trunkline_internal.running, bigint, integer[], bigint[], trunkline_internal.amounts, bigint, timestamptz) is 'Takes over what a job''s claim has charged for a call of its handler, and charges the call to quotas of its other limits.';

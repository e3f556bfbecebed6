-- Refunds what claims have charged for attempts that a worker hands back before it started them.
-- Locks the attempts in id order, as the functions that move them do. Charges that acquire or settle_job took over stay.
create or replace function trunkline_internal.refund_unstarted(p_worker text, p_jobs uuid[], p_attempts integer[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_buckets bigint[];
  v_locked uuid[];
begin
  if not exists (select from trunkline_internal.running as r where r.job_id = any(p_jobs) and r.bucket_ids is not null) then
    return;
  end if;
  v_locked := trunkline_internal.lock_running(
    p_worker => p_worker, p_jobs => p_jobs, p_attempts => p_attempts, p_scope => trunkline.tenant_scope()
  );
  with charged as (
    select
      r.job_id, r.attempt, r.task, r.tenant, r.cost_requests, r.cost_tokens, r.cost_units, i.limit_id, i.bucket,
      floor(extract(epoch from r.claimed_at))::bigint as at
    from trunkline_internal.running as r
    cross join lateral unnest(r.limit_ids, r.bucket_ids) as i (limit_id, bucket)
    where r.job_id = any(v_locked)
  ),
  -- A row of zeros in the usage ledger marks the charge as settled.
  taken as (
    insert into trunkline_internal.usage (
      at, job_id, attempt, bucket, limit_id, task, tenant, requests, tokens, units, cost
    )
    select
      trunkline.clock(), c.job_id, c.attempt, c.bucket, trunkline_internal.limit_of(p_bucket => c.bucket, p_limit => c.limit_id),
      c.task, c.tenant, 0, 0, 0, 0
    from charged as c
    order by c.job_id, c.bucket
    on conflict (job_id, attempt, bucket) where grant_id is null do nothing
    returning job_id, bucket
  ),
  corrected as (
    insert into trunkline_internal.bucket_adjustments (bucket, at, requests, tokens, units)
    select c.bucket, c.at, -sum(c.cost_requests)::bigint, -sum(c.cost_tokens)::bigint, -sum(c.cost_units)::bigint
    from charged as c
    join taken as t on t.job_id = c.job_id and t.bucket = c.bucket
    -- As in adjust_bucket.
    where c.at <= extract(epoch from trunkline.clock()) + 2
    group by c.bucket, c.at
    returning bucket
  )
  select array_agg(distinct c.bucket) into v_buckets from corrected as c;
  perform trunkline_internal.wake_buckets(p_buckets => v_buckets, p_queues => array[]::text[], p_slots => false, p_elsewhere => true);
end;
$$;
comment on function trunkline_internal.refund_unstarted(text, uuid[], integer[]) is 'Refunds what claims have charged for attempts that a worker hands back before it started them.';

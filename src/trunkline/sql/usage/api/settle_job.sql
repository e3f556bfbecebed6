-- Settles what the claim of a running attempt has charged, for all of its limits; returns settled, already or unknown.
-- The slot is held until the attempt ends. p_actual is as in settle. Charges that acquire took over are settled there. After
-- a limit's shortest window, counted from the claim, the attempt counts as late for that limit, unless it used nothing. An
-- attempt that has ended is unknown: it was charged as estimated.
create or replace function trunkline.settle_job(p_job uuid, p_attempt integer, p_actual jsonb default null)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_charged bigint;
  v_bucket record;
  v_job trunkline_internal.running;
  v_now timestamptz := trunkline.clock();
  v_paying bigint;
  v_requests bigint;
  v_scope text := trunkline.tenant_scope();
  v_settled boolean := false;
  v_tokens bigint;
begin
  perform trunkline_internal.check_actual(p_actual => p_actual);
  select r.* into v_job
  from trunkline_internal.running as r
  where r.job_id = p_job and r.attempt = p_attempt and (v_scope is null or r.tenant = v_scope);
  if not found or v_job.bucket_ids is null then
    return 'unknown';
  end if;
  v_charged := floor(extract(epoch from v_job.claimed_at))::bigint;
  -- Money is recorded once, however many limits the job has: for the first without a share group.
  select coalesce(min(i.place), 1)
  into v_paying
  from unnest(v_job.limit_ids) with ordinality as i (limit_id, place)
  join trunkline_internal.limits as l on l.limit_id = i.limit_id
  where l.share_group is null;
  v_requests := coalesce((p_actual ->> 'requests')::bigint, v_job.cost_requests);
  v_tokens := coalesce((p_actual ->> 'tokens')::bigint, v_job.cost_tokens);
  for v_bucket in
    insert into trunkline_internal.usage (
      at, job_id, attempt, bucket, limit_id, task, tenant, requests, tokens, units, cost, late
    )
    select
      v_now, p_job, p_attempt, i.bucket, c.limit_id, v_job.task, v_job.tenant, v_requests, v_tokens,
      coalesce(trunkline_internal.actual_units(p_actual => p_actual, p_limit => c.limit_id), v_job.cost_units),
      case when i.place = v_paying then coalesce((p_actual ->> 'cost')::numeric, 0) else 0 end,
      v_requests + v_tokens > 0
        and coalesce(v_job.claimed_at < v_now - trunkline_internal.shortest_window(p_limit => l), false)
    from unnest(v_job.limit_ids, v_job.bucket_ids) with ordinality as i (limit_id, bucket, place)
    cross join lateral trunkline_internal.limit_of(
      p_bucket => i.bucket, p_limit => i.limit_id
    ) as c (limit_id)
    left join trunkline_internal.limits as l on l.limit_id = c.limit_id
    order by i.bucket
    on conflict (job_id, attempt, bucket) where grant_id is null do nothing
    returning bucket, limit_id, units
  loop
    v_settled := true;
    perform trunkline_internal.adjust_bucket(
      p_bucket => v_bucket.bucket, p_at => v_charged, p_requests => v_requests - v_job.cost_requests,
      p_tokens => v_tokens - v_job.cost_tokens, p_units => v_bucket.units - v_job.cost_units
    );
    perform trunkline_internal.learn_estimate(
      p_task => v_job.task, p_bucket => v_bucket.bucket, p_tokens => (p_actual ->> 'tokens')::bigint,
      p_units => trunkline_internal.actual_units(p_actual => p_actual, p_limit => v_bucket.limit_id), p_now => v_now
    );
  end loop;
  return case when v_settled then 'settled' else 'already' end;
end;
$$;
comment on function trunkline.settle_job(uuid, integer, jsonb) is 'Settles what the claim of a running attempt has charged, for all of its limits; returns settled, already or unknown.';

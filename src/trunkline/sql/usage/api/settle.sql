-- Settles a grant with what the call really used; returns settled, already or unknown.
-- Amounts that p_actual (requests, tokens, units, cost) leaves out stay as estimated. cost is money, for the usage ledger
-- only. bytes is the size of the response: the units of quotas that count bytes, unless units is given. The difference goes
-- to the second that was charged. A second call changes nothing. Waits for no lock.
-- Quotas of the job's other limits, which were charged the same, are settled with it; money is recorded once.
create or replace function trunkline.settle(p_grant uuid, p_actual jsonb default null)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_other record;
  v_grant trunkline_internal.grants;
  v_learned bigint;
  v_now timestamptz := trunkline.clock();
  v_requests bigint;
  v_scope text := trunkline.tenant_scope();
  v_tokens bigint;
  v_units bigint;
begin
  perform trunkline_internal.check_actual(p_actual => p_actual);
  update trunkline_internal.grants as g
  set settled_at = v_now
  where g.grant_id = p_grant and g.settled_at is null and (v_scope is null or g.tenant = v_scope)
  returning g.* into v_grant;
  if not found then
    return case
      when exists (
        select from trunkline_internal.grants as g where g.grant_id = p_grant and (v_scope is null or g.tenant = v_scope)
      ) then 'already'
      else 'unknown'
    end;
  end if;
  v_requests := coalesce((p_actual ->> 'requests')::bigint, v_grant.requests);
  v_tokens := coalesce((p_actual ->> 'tokens')::bigint, v_grant.tokens);
  v_learned := trunkline_internal.actual_units(p_actual => p_actual, p_limit => v_grant.limit_id);
  v_units := coalesce(v_learned, v_grant.units);
  perform trunkline_internal.adjust_bucket(
    p_bucket => v_grant.bucket, p_at => v_grant.charged_at, p_requests => v_requests - v_grant.requests,
    p_tokens => v_tokens - v_grant.tokens, p_units => v_units - v_grant.units
  );
  insert into trunkline_internal.usage (
    at, grant_id, job_id, attempt, bucket, limit_id, task, tenant, requests, tokens, units, cost
  )
  values (
    v_now, p_grant, v_grant.job_id, v_grant.attempt, v_grant.bucket, v_grant.limit_id, v_grant.task, v_grant.tenant,
    v_requests, v_tokens, v_units, coalesce((p_actual ->> 'cost')::numeric, 0)
  );
  perform trunkline_internal.learn_estimate(
    p_task => v_grant.task, p_bucket => v_grant.bucket, p_tokens => (p_actual ->> 'tokens')::bigint, p_units => v_learned,
    p_now => v_now
  );
  for v_other in
    select o.limit_id, o.bucket from unnest(v_grant.other_limit_ids, v_grant.other_bucket_ids) as o (limit_id, bucket)
  loop
    v_learned := trunkline_internal.actual_units(p_actual => p_actual, p_limit => v_other.limit_id);
    v_units := coalesce(v_learned, v_grant.units);
    perform trunkline_internal.adjust_quota(
      p_bucket => v_other.bucket, p_limit => v_other.limit_id, p_at => v_grant.charged_at,
      p_before => row(v_grant.requests, v_grant.tokens, v_grant.units)::trunkline_internal.amounts,
      p_after => row(v_requests, v_tokens, v_units)::trunkline_internal.amounts
    );
    insert into trunkline_internal.usage (
      at, grant_id, job_id, attempt, bucket, limit_id, task, tenant, requests, tokens, units, cost
    )
    values (
      v_now, p_grant, v_grant.job_id, v_grant.attempt, v_other.bucket, v_other.limit_id, v_grant.task, v_grant.tenant,
      v_requests, v_tokens, v_units, 0
    );
    perform trunkline_internal.learn_estimate(
      p_task => v_grant.task, p_bucket => v_other.bucket, p_tokens => (p_actual ->> 'tokens')::bigint, p_units => v_learned,
      p_now => v_now
    );
  end loop;
  if exists (select from trunkline_internal.breakers as b where b.bucket = v_grant.bucket and b.probe_job = p_grant) then
    perform trunkline_internal.close_breakers(p_jobs => array[p_grant], p_now => v_now);
  end if;
  -- Its slot is free now.
  perform trunkline_internal.wake_bucket(p_bucket => v_grant.bucket);
  return 'settled';
end;
$$;
comment on function trunkline.settle(uuid, jsonb) is 'Settles a grant with what the call really used; returns settled, already or unknown.';

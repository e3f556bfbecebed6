-- Creates a limit or changes the given parts of it, with their defaults; returns whether it is new.
-- The caller has checked the parts. Waiting jobs are read again, because a limit with a filled-in name takes precedence.
create or replace function trunkline_internal.store_limit(p_limit text, p_parts jsonb, p_status text, p_reason text, p_declared jsonb)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_limit integer;
  v_new trunkline_internal.limits;
  v_now timestamptz := trunkline.clock();
  v_old trunkline_internal.limits;
begin
  insert into trunkline_internal.limits (name, created_at, updated_at, updated_by)
  values (p_limit, v_now, v_now, session_user)
  on conflict (name) do nothing
  returning limit_id into v_limit;
  select l.* into strict v_old from trunkline_internal.limits as l where l.name = p_limit for no key update;
  v_new := jsonb_populate_record(v_old, p_parts);
  if v_old.concurrency is null and v_new.concurrency is not null and v_old.share_group is null then
    -- Claims hold the lock until they commit, so all jobs that run by then are visible.
    perform trunkline_internal.lock_bucket(p_bucket => v_old.bucket);
    perform trunkline_internal.list_holders(p_limit => v_old.limit_id, p_bucket => v_old.bucket, p_now => v_now);
  end if;
  if v_new.quota is not null then
    v_new.quota_unit := coalesce(v_new.quota_unit, 'units');
    if p_parts ->> 'quota_period' is not null then
      v_new.quota_window := null;
    elsif p_parts ->> 'quota_window' is not null then
      v_new.quota_period := null;
    end if;
    if v_new.quota_period is null then
      v_new.quota_window := coalesce(v_new.quota_window, interval '30 days');
    end if;
    -- A budget may be spent completely. A provider's quota keeps a reserve for wrong estimates.
    v_new.quota_buffer := coalesce(v_new.quota_buffer, case when v_new.quota_period is null then 0.95 else 1 end);
    v_new.quota_low_share := coalesce(v_new.quota_low_share, 0.75);
    v_new.quota_low_below := coalesce(v_new.quota_low_below, 0::smallint);
  end if;
  if v_new.breaker_failures is not null then
    v_new.breaker_share := coalesce(v_new.breaker_share, 0.2);
    v_new.breaker_window := coalesce(v_new.breaker_window, interval '10 minutes');
    v_new.breaker_probe_after := coalesce(v_new.breaker_probe_after, interval '1 minute');
  end if;
  update trunkline_internal.limits as l
  set
    requests_per_minute = v_new.requests_per_minute,
    requests_per_hour = v_new.requests_per_hour,
    tokens_per_minute = v_new.tokens_per_minute,
    tokens_per_hour = v_new.tokens_per_hour,
    concurrency = v_new.concurrency,
    quota = v_new.quota,
    quota_unit = v_new.quota_unit,
    quota_window = v_new.quota_window,
    quota_period = v_new.quota_period,
    quota_buffer = v_new.quota_buffer,
    quota_low_share = v_new.quota_low_share,
    quota_low_below = v_new.quota_low_below,
    quota_refuses = v_new.quota_refuses,
    breaker_failures = v_new.breaker_failures,
    breaker_share = v_new.breaker_share,
    breaker_window = v_new.breaker_window,
    breaker_probe_after = v_new.breaker_probe_after,
    backpressure_threshold = v_new.backpressure_threshold,
    backpressure_delay = v_new.backpressure_delay,
    depth_limit = v_new.depth_limit,
    depth_refuses = v_new.depth_refuses,
    weight = v_new.weight,
    share_cap = v_new.share_cap,
    status = coalesce(p_status, l.status),
    reason = case when p_status is not null then p_reason else l.reason end,
    declared = coalesce(p_declared, l.declared),
    -- Later than everything computed from the limit before, also after the clock was set back.
    updated_at = greatest(v_now, l.updated_at + interval '1 microsecond'),
    updated_by = session_user
  where l.name = p_limit;
  if v_limit is not null then
    -- Jobs may wait under this name for a limit with keys. From now on this limit applies to them.
    perform trunkline_internal.assign_named_buckets();
  end if;
  perform trunkline_internal.wake_sleepers(p_queues => array(
    select distinct g.queue from trunkline_internal.bucket_queues as g
  ));
  return v_limit is not null;
end;
$$;
comment on function trunkline_internal.store_limit(text, jsonb, text, text, jsonb) is 'Creates a limit or changes the given parts of it, with their defaults; returns whether it is new.';

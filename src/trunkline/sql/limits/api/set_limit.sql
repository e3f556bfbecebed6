-- Creates a limit or changes the given parts; a part given as null is no longer limited. Returns whether the limit is new.
-- p_parts is an object. What may run: requests_per_minute, requests_per_hour, tokens_per_minute, tokens_per_hour,
-- concurrency. A quota: quota, quota_unit, quota_window or quota_period, quota_buffer, quota_low_share, quota_low_below,
-- quota_refuses. A breaker: breaker_failures, breaker_share, breaker_window, breaker_probe_after. At enqueue:
-- backpressure_threshold, backpressure_delay, depth_limit, depth_refuses. For keys of a share group: weight, share_cap.
-- A name with keys in braces, as in openai/{model}, is a separate limit for each value of them. A limit with a filled-in
-- name takes precedence. A name that could produce the same filled-in name as another limit or task is refused.
-- Applies from the next claim, also to jobs that wait already. A new part counts what is claimed from then on.
-- ready -> blocked for waiting jobs that cost more than the changed limit can ever allow, blocked -> ready for jobs
-- that fit again: about 5,000 of each at most. The duty sweep_buckets does the rest.
create or replace function trunkline.set_limit(
  p_limit text,
  p_parts jsonb default '{}',
  p_status text default null,
  p_reason text default null
)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before jsonb;
  c_depth constant integer := 1000;
  c_buckets constant integer := 1000;
  c_most constant integer := 5000;
  v_bad text;
  v_buckets bigint[];
  v_limits integer[];
  v_must text;
  v_new boolean;
  v_other text;
  v_parts jsonb := coalesce(p_parts, '{}'::jsonb);
begin
  perform trunkline_internal.require_all_tenants(p_detail => jsonb_build_object('limit', p_limit));
  v_other := trunkline_internal.overlapping_limit(p_name => p_limit);
  case
    when not trunkline_internal.is_limit_name(p_name => p_limit) then
      v_bad := 'p_limit'; v_must := '1 to 200 bytes, and between two keys something that begins with no letter, digit or %';
    when v_other is not null then
      v_bad := 'p_limit'; v_must := format('a name that cannot be filled in to the same as another limit: %s overlaps', v_other);
    when p_status not in ('active', 'maintenance', 'disabled') then
      v_bad := 'p_status'; v_must := 'active, maintenance or disabled';
    when length(p_reason) > 1000 then
      v_bad := 'p_reason'; v_must := 'at most 1000 characters';
    else
      v_must := trunkline_internal.check_limit_parts(p_parts => v_parts);
      v_bad := case when v_must is not null then 'p_parts' end;
  end case;
  if v_bad is not null then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument', p_detail => jsonb_build_object('argument', v_bad, 'must_be', v_must)
    );
  end if;
  v_before := trunkline_internal.operated_state(p_kind => 'limit', p_object => p_limit);
  v_new := trunkline_internal.store_limit(
    p_limit => p_limit, p_parts => v_parts, p_status => p_status, p_reason => p_reason, p_declared => null
  );
  perform trunkline_internal.log_change(
    p_action => 'set_limit', p_kind => 'limit', p_object => p_limit, p_before => v_before, p_reason => p_reason
  );
  -- Above READ COMMITTED the call would fail if another session has changed one of the jobs: all is left to the duty.
  if current_setting('transaction_isolation') = 'read committed' then
    select g.buckets, g.limits
    into v_buckets, v_limits
    from trunkline_internal.buckets_to_check(p_limit => p_limit, p_most => c_buckets) as g;
    perform trunkline_internal.set_heads_aside(
      p_buckets => v_buckets, p_limits => v_limits, p_depth => c_depth, p_now => trunkline.clock()
    );
    perform trunkline_internal.free_set_aside(p_most => c_most, p_now => trunkline.clock());
  end if;
  return v_new;
end;
$$;
comment on function trunkline.set_limit(text, jsonb, text, text) is 'Creates a limit or changes the given parts; a part given as null is no longer limited. Returns whether the limit is new.';

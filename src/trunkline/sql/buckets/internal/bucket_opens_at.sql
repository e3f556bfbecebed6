-- Returns when time alone lets one bucket start a job: windows, pause, breaker, quota; -infinity for now, infinity for never.
create or replace function trunkline_internal.bucket_opens_at(
  p_bucket bigint,
  p_limit trunkline_internal.limits,
  p_state trunkline_internal.bucket_states,
  p_cost trunkline_internal.amounts,
  p_lane integer,
  p_now timestamptz
)
returns timestamptz
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return greatest(
    trunkline_internal.window_free_at(
      p_limit => p_limit,
      p_state => trunkline_internal.adjusted_state(p_bucket => p_bucket, p_limit => p_limit, p_state => p_state, p_now => p_now),
      p_requests => p_cost.requests, p_tokens => p_cost.tokens
    ),
    case when p_state.paused_until > p_now then p_state.paused_until end,
    case when p_limit.breaker_failures is not null then trunkline_internal.breaker_opens_at(p_bucket => p_bucket, p_now => p_now) end,
    case when p_limit.quota is not null then trunkline_internal.quota_free_at(
      p_bucket => p_bucket, p_limit => p_limit, p_state => p_state,
      p_amount => trunkline_internal.amount_of(
        p_unit => p_limit.quota_unit, p_requests => p_cost.requests, p_tokens => p_cost.tokens, p_units => p_cost.units
      ),
      p_low => p_lane < p_limit.quota_low_below * 2, p_now => p_now
    ) end
  );
end;
$$;
comment on function trunkline_internal.bucket_opens_at(bigint, trunkline_internal.limits, trunkline_internal.bucket_states, trunkline_internal.amounts, integer, timestamptz) is 'Returns when time alone lets one bucket start a job: windows, pause, breaker, quota; -infinity for now, infinity for never.';

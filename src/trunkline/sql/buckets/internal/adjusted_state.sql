-- Returns the bucket state with all visible adjustments applied. For calculation only; never stored.
create or replace function trunkline_internal.adjusted_state(
  p_bucket bigint,
  p_limit trunkline_internal.limits,
  p_state trunkline_internal.bucket_states,
  p_now timestamptz
)
returns trunkline_internal.bucket_states
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if num_nonnulls(
    p_limit.requests_per_minute, p_limit.requests_per_hour, p_limit.tokens_per_minute, p_limit.tokens_per_hour
  ) = 0 then
    return p_state;
  end if;
  return trunkline_internal.charge_windows(
    p_limit => p_limit, p_state => p_state, p_bucket => p_bucket, p_requests => 0, p_tokens => 0, p_now => p_now,
    p_below => '9223372036854775807'::xid8
  );
end;
$$;
comment on function trunkline_internal.adjusted_state(bigint, trunkline_internal.limits, trunkline_internal.bucket_states, timestamptz) is 'Returns the bucket state with all visible adjustments applied. For calculation only; never stored.';

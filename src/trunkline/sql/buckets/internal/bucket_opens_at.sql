-- Tells when a job may start as far as time and one of its buckets decide: windows, a provider's hold, a breaker, a quota; -infinity for now, infinity for never.
create or replace function trunkline_internal.bucket_opens_at(
  p_bucket bigint,
  p_limit trunkline_internal.limits,
  p_state trunkline_internal.bucket_states,
  p_need bigint[],
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
      p_requests => p_need[1], p_tokens => p_need[2]
    ),
    case when p_state.paused_until > p_now then p_state.paused_until end,
    case when p_limit.breaker_failures is not null then trunkline_internal.breaker_opens_at(p_bucket => p_bucket, p_now => p_now) end,
    case when p_limit.quota is not null then trunkline_internal.quota_free_at(
      p_bucket => p_bucket, p_limit => p_limit, p_state => p_state,
      p_amount => p_need[trunkline_internal.quota_part(p_unit => p_limit.quota_unit)],
      p_low => p_lane < p_limit.quota_low_below * 2, p_now => p_now
    ) end
  );
end;
$$;
comment on function trunkline_internal.bucket_opens_at(bigint, trunkline_internal.limits, trunkline_internal.bucket_states, bigint[], integer, timestamptz) is 'Tells when a job may start as far as time and one of its buckets decide: windows, a provider''s hold, a breaker, a quota; -infinity for now, infinity for never.';

-- Returns when an amount fits a bucket's quota, if nothing else is charged: -infinity for now, infinity for never.
-- A rolling window frees its oldest hour each hour; a period frees everything at its end. Computed in UTC, because the
-- session's time zone may change its offset in between.
create or replace function trunkline_internal.quota_free_at(
  p_bucket bigint,
  p_limit trunkline_internal.limits,
  p_state trunkline_internal.bucket_states,
  p_amount bigint,
  p_low boolean,
  p_now timestamptz
)
returns timestamptz
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_hour bigint;
  v_most bigint := floor(
    p_limit.quota * case when p_low then least(p_limit.quota_low_share, p_limit.quota_buffer) else p_limit.quota_buffer end
  )::bigint;
  v_spent bigint;
begin
  select
    trunkline_internal.quota_spent(p_limit => p_limit, p_state => p_state, p_bucket => p_bucket, p_now => p_now)
    + coalesce(sum(trunkline_internal.amount_of(
      p_unit => p_limit.quota_unit, p_requests => c.requests, p_tokens => c.tokens, p_units => c.units
    )), 0)::bigint
  into v_spent
  from trunkline_internal.bucket_adjustments as c
  where c.bucket = p_bucket
    and c.xid >= coalesce(p_state.adjusted_below, '0'::xid8)
    and c.at / 3600 >= trunkline_internal.quota_since(p_limit => p_limit, p_now => p_now);
  if v_spent + p_amount <= v_most then
    return '-infinity'::timestamptz;
  elsif p_amount > v_most then
    return 'infinity'::timestamptz;
  elsif p_limit.quota_period is not null then
    return (date_trunc(p_limit.quota_period, p_now at time zone 'UTC') + ('1 ' || p_limit.quota_period)::interval)
      at time zone 'UTC';
  end if;
  select min(q.hour)
  into v_hour
  from (
    select q.hour, sum(q.amount) over (order by q.hour) as given_back
    from trunkline_internal.quota_hours as q
    where q.bucket = p_bucket and q.hour >= trunkline_internal.quota_since(p_limit => p_limit, p_now => p_now)
  ) as q
  where v_spent - q.given_back + p_amount <= v_most;
  return to_timestamp((
    (coalesce(v_hour, floor(extract(epoch from p_now) / 3600)::bigint) + 1) * 3600 + extract(epoch from p_limit.quota_window)
  )::double precision);
end;
$$;
comment on function trunkline_internal.quota_free_at(bigint, trunkline_internal.limits, trunkline_internal.bucket_states, bigint, boolean, timestamptz) is 'Returns when an amount fits a bucket''s quota, if nothing else is charged: -infinity for now, infinity for never.';

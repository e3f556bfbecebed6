-- Returns what a bucket's quota counts now, without adjustments that are not part of it yet.
create or replace function trunkline_internal.quota_spent(
  p_limit trunkline_internal.limits,
  p_state trunkline_internal.bucket_states,
  p_bucket bigint,
  p_now timestamptz
)
returns bigint
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_spent bigint;
begin
  if p_state.spent_hour = floor(extract(epoch from p_now) / 3600) and p_state.computed_by >= p_limit.updated_at then
    return p_state.spent;
  end if;
  select coalesce(sum(q.amount), 0)::bigint
  into v_spent
  from trunkline_internal.quota_hours as q
  where q.bucket = p_bucket and q.hour >= trunkline_internal.quota_since(p_limit => p_limit, p_now => p_now);
  return v_spent;
end;
$$;
comment on function trunkline_internal.quota_spent(trunkline_internal.limits, trunkline_internal.bucket_states, bigint, timestamptz) is 'Returns what a bucket''s quota counts now, without adjustments that are not part of it yet.';

-- Returns the part of a limit that has no room for a cost, the one that opens last; null if there is room.
create or replace function trunkline_internal.why_no_room(
  p_bucket bigint,
  p_limit trunkline_internal.limits,
  p_state trunkline_internal.bucket_states,
  p_cost trunkline_internal.amounts,
  p_requests bigint,
  p_tokens bigint,
  p_units bigint,
  p_slots bigint,
  p_now timestamptz
)
returns text
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return case
    when p_limit.status <> 'active' then p_limit.status
    when p_state.paused_until > p_now then 'paused'
    when trunkline_internal.amount_of(
      p_unit => p_limit.quota_unit, p_requests => p_cost.requests, p_tokens => p_cost.tokens, p_units => p_cost.units
    ) > p_units then 'quota'
    when p_slots < 1 then
      case
        when p_limit.breaker_failures is not null
          and trunkline_internal.breaker_room(p_bucket => p_bucket, p_now => p_now) is not null then 'breaker'
        else 'concurrency'
      end
    when p_cost.requests > p_requests or p_cost.tokens > p_tokens then (
      select o.part
      from (
        values
          ('requests_per_minute', p_limit.requests_per_minute, null::bigint, null::bigint, null::bigint),
          ('requests_per_hour', null, p_limit.requests_per_hour, null, null),
          ('tokens_per_minute', null, null, p_limit.tokens_per_minute, null),
          ('tokens_per_hour', null, null, null, p_limit.tokens_per_hour)
      ) as o (part, a, b, c, d)
      order by trunkline_internal.window_free_at(
        p_limit => jsonb_populate_record(p_limit, jsonb_build_object(
          'requests_per_minute', o.a, 'requests_per_hour', o.b, 'tokens_per_minute', o.c, 'tokens_per_hour', o.d
        )),
        p_state => trunkline_internal.adjusted_state(p_bucket => p_bucket, p_limit => p_limit, p_state => p_state, p_now => p_now),
        p_requests => p_cost.requests, p_tokens => p_cost.tokens
      ) desc
      limit 1
    )
  end;
end;
$$;
comment on function trunkline_internal.why_no_room(bigint, trunkline_internal.limits, trunkline_internal.bucket_states, trunkline_internal.amounts, bigint, bigint, bigint, bigint, timestamptz) is 'Returns the part of a limit that has no room for a cost, the one that opens last; null if there is room.';

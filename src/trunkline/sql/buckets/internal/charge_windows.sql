-- Returns the bucket state after a charge: adds the charge and adjustments, drops what no window counts any more.
-- Includes adjustments of transactions below p_below, all of which have ended. Charges older than a minute are merged by
-- the minute, under its last second: an hour takes 60 numbers.
-- After the clock was set back, charges in the future count as of now. A refund for such a second does not count: the
-- window would drop it later than its charge and be open twice.
create or replace function trunkline_internal.charge_windows(
  p_limit trunkline_internal.limits,
  p_state trunkline_internal.bucket_states,
  p_bucket bigint,
  p_requests bigint,
  p_tokens bigint,
  p_now timestamptz,
  p_below xid8
)
returns trunkline_internal.bucket_states
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  c_slack constant integer := 2;
  v_length integer := case when num_nonnulls(p_limit.requests_per_hour, p_limit.tokens_per_hour) > 0 then 3602 else 62 end;
  v_next trunkline_internal.bucket_states := p_state;
  v_second bigint := floor(extract(epoch from p_now))::bigint;
begin
  select array_agg(c.at), array_agg(c.requests), array_agg(c.tokens)
  into v_next.charged_at, v_next.charged_requests, v_next.charged_tokens
  from (
    select c.at, sum(c.requests)::bigint as requests, sum(c.tokens)::bigint as tokens
    from (
      select
        case when c.at - c.at % 60 + 59 <= v_second - 62 then c.at - c.at % 60 + 59 else least(c.at, v_second) end as at,
        c.requests,
        c.tokens
      from (
        select c.at, c.requests, c.tokens
        from unnest(p_state.charged_at, p_state.charged_requests, p_state.charged_tokens) as c (at, requests, tokens)
        union all
        select
          c.at,
          case when c.at > v_second + c_slack then greatest(c.requests, 0) else c.requests end,
          case when c.at > v_second + c_slack then greatest(c.tokens, 0) else c.tokens end
        from trunkline_internal.bucket_adjustments as c
        where c.bucket = p_bucket and c.xid >= coalesce(p_state.adjusted_below, '0'::xid8) and c.xid < p_below
      ) as c
      where c.at > v_second - v_length
      union all
      select v_second, p_requests, p_tokens where p_requests > 0 or p_tokens > 0
    ) as c
    group by c.at
    order by c.at
  ) as c;
  return v_next;
end;
$$;
comment on function trunkline_internal.charge_windows(trunkline_internal.limits, trunkline_internal.bucket_states, bigint, bigint, bigint, timestamptz, xid8) is 'Returns the bucket state after a charge: adds the charge and adjustments, drops what no window counts any more.';

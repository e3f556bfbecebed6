-- Gives the windows of a gate after a charge: what was given out now is added, what no window sees any more is left out.
-- What is past the minute is put together by minutes, under the last second of each: an hour takes 60 numbers.
-- A clock that was set back leaves charges in the future; they count as of now.
create or replace function trunkline_internal.charge_gate(
  p_limit trunkline_internal.limits,
  p_state trunkline_internal.gate_states,
  p_requests bigint,
  p_tokens bigint,
  p_now timestamptz
)
returns trunkline_internal.gate_states
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_length integer := case when num_nonnulls(p_limit.requests_per_hour, p_limit.tokens_per_hour) > 0 then 3602 else 62 end;
  v_next trunkline_internal.gate_states := p_state;
  v_second bigint := floor(extract(epoch from p_now))::bigint;
begin
  if num_nonnulls(
    p_limit.requests_per_minute, p_limit.requests_per_hour, p_limit.tokens_per_minute, p_limit.tokens_per_hour
  ) > 0 then
    select array_agg(c.at), array_agg(c.requests), array_agg(c.tokens)
    into v_next.charged_at, v_next.charged_requests, v_next.charged_tokens
    from (
      select c.at, sum(c.requests)::bigint as requests, sum(c.tokens)::bigint as tokens
      from (
        select
          case when c.at - c.at % 60 + 59 <= v_second - 62 then c.at - c.at % 60 + 59 else least(c.at, v_second) end as at,
          c.requests,
          c.tokens
        from unnest(p_state.charged_at, p_state.charged_requests, p_state.charged_tokens) as c (at, requests, tokens)
        where c.at > v_second - v_length
        union all
        select v_second, p_requests, p_tokens where p_requests > 0 or p_tokens > 0
      ) as c
      group by c.at
      order by c.at
    ) as c;
  end if;
  return v_next;
end;
$$;
comment on function trunkline_internal.charge_gate(trunkline_internal.limits, trunkline_internal.gate_states, bigint, bigint, timestamptz) is 'Gives the windows of a gate after a charge: what was given out now is added, what no window sees any more is left out.';

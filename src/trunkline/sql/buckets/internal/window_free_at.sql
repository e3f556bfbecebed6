-- Tells when an amount fits into what a bucket's windows leave, as far as time alone decides; -infinity where it fits now, infinity for never.
-- Each window holds what was given out in its length, plus the second it was charged in, plus the second within which
-- a job must have started: what the provider sees never comes closer together than the window is long.
create or replace function trunkline_internal.window_free_at(
  p_limit trunkline_internal.limits,
  p_state trunkline_internal.bucket_states,
  p_requests bigint,
  p_tokens bigint
)
returns timestamptz
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_hour bigint;
  v_minute bigint;
begin
  if p_requests > p_limit.requests_per_minute or p_requests > p_limit.requests_per_hour
    or p_tokens > p_limit.tokens_per_minute or p_tokens > p_limit.tokens_per_hour
  then
    return 'infinity'::timestamptz;
  end if;
  -- From the newest back: the first that makes the sum too large is the one that has to grow old.
  select
    max(c.at) filter (where c.requests > p_limit.requests_per_minute - p_requests or c.tokens > p_limit.tokens_per_minute - p_tokens),
    max(c.at) filter (where c.requests > p_limit.requests_per_hour - p_requests or c.tokens > p_limit.tokens_per_hour - p_tokens)
  into v_minute, v_hour
  from (
    select
      c.at,
      sum(c.requests) over (order by c.at desc) as requests,
      sum(c.tokens) over (order by c.at desc) as tokens
    from unnest(p_state.charged_at, p_state.charged_requests, p_state.charged_tokens) as c (at, requests, tokens)
  ) as c;
  return coalesce(to_timestamp(greatest(v_minute + 62, v_hour + 3602)::double precision), '-infinity'::timestamptz);
end;
$$;
comment on function trunkline_internal.window_free_at(trunkline_internal.limits, trunkline_internal.bucket_states, bigint, bigint) is 'Tells when an amount fits into what a bucket''s windows leave, as far as time alone decides; -infinity where it fits now, infinity for never.';

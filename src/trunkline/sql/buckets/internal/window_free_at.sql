-- Returns when a cost fits the windows of a bucket, as far as time alone decides; -infinity for now, infinity for never.
-- Each window counts its length, plus the second of the charge, plus the second within which a claimed job starts. So the
-- provider never sees more than the limit within its window.
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
  -- From the newest back: the first charge that makes the sum too large is the one that has to leave the window.
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
comment on function trunkline_internal.window_free_at(trunkline_internal.limits, trunkline_internal.bucket_states, bigint, bigint) is 'Returns when a cost fits the windows of a bucket, as far as time alone decides; -infinity for now, infinity for never.';

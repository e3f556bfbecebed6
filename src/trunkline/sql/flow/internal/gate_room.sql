-- Tells what gates have left now: their newest state, the limit that counts, and how many requests, tokens and slots; null: no end of it.
-- The caller holds their locks. Holders that run no more hold nothing.
create or replace function trunkline_internal.gate_room(p_gates bigint[], p_limits integer[], p_now timestamptz)
returns table (
  gate bigint,
  allowed trunkline_internal.limits,
  state trunkline_internal.gate_states,
  requests bigint,
  tokens bigint,
  slots bigint
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_second bigint := floor(extract(epoch from p_now))::bigint;
begin
  return query
  select
    g.gate,
    m,
    s.state,
    least(
      m.requests_per_minute - coalesce(c.requests_of_minute, 0), m.requests_per_hour - coalesce(c.requests_of_hour, 0)
    )::bigint,
    least(m.tokens_per_minute - coalesce(c.tokens_of_minute, 0), m.tokens_per_hour - coalesce(c.tokens_of_hour, 0))::bigint,
    m.concurrency - h.live
  from unnest(p_gates, p_limits) as g (gate, limit_id)
  join trunkline_internal.limits as m on m.limit_id = g.limit_id
  left join lateral (
    select s as state from trunkline_internal.gate_states as s where s.gate = g.gate order by s.epoch desc limit 1
  ) as s on true
  cross join lateral (
    select count(*) as live
    from unnest((s.state).holders) as h (holder)
    where exists (select from trunkline_internal.running as r where r.job_id = h.holder)
  ) as h
  cross join lateral (
    select
      sum(c.requests) filter (where c.at > v_second - 62) as requests_of_minute,
      sum(c.tokens) filter (where c.at > v_second - 62) as tokens_of_minute,
      sum(c.requests) filter (where c.at > v_second - 3602) as requests_of_hour,
      sum(c.tokens) filter (where c.at > v_second - 3602) as tokens_of_hour
    from unnest((s.state).charged_at, (s.state).charged_requests, (s.state).charged_tokens) as c (at, requests, tokens)
  ) as c;
end;
$$;
comment on function trunkline_internal.gate_room(bigint[], integer[], timestamptz) is 'Tells what gates have left now: their newest state, the limit that counts, and how many requests, tokens and slots; null: no end of it.';

-- Charges gates with the limited jobs that a claim starts: the next epoch of each is written and the last one deleted.
-- The caller holds the gates.
create or replace function trunkline_internal.charge_gates(
  p_started trunkline_internal.gated_job[],
  p_covered jsonb,
  p_snapshot pg_snapshot,
  p_now timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  -- So many of one gate at once, and it is worth keeping a place.
  c_busy constant integer := 20;
  v_epochs bigint[];
  v_gates bigint[];
begin
  with used as (
    select
      f.need[i.place + 1] as gate,
      max(f.need[i.place])::integer as limit_id,
      sum(f.need[1])::bigint as requests,
      sum(f.need[2])::bigint as tokens,
      array_agg(f.job_id) as jobs
    from unnest(p_started) as f
    cross join lateral generate_series(3, cardinality(f.need), 2) as i (place)
    group by f.need[i.place + 1]
  ),
  charged as materialized (
    select
      u.gate, u.jobs, m, h.live,
      case
        when num_nonnulls(m.requests_per_minute, m.requests_per_hour, m.tokens_per_minute, m.tokens_per_hour) = 0 then s.state
        else trunkline_internal.charge_gate(
          p_limit => m, p_state => s.state, p_requests => u.requests, p_tokens => u.tokens, p_now => p_now
        )
      end as state
    from used as u
    join trunkline_internal.limits as m on m.limit_id = trunkline_internal.limit_of(p_gate => u.gate, p_limit => u.limit_id)
    left join lateral (
      select s as state from trunkline_internal.gate_states as s where s.gate = u.gate order by s.epoch desc limit 1
    ) as s on true
    cross join lateral (
      select array_agg(h.holder) as live
      from unnest((s.state).holders) as h (holder)
      where exists (select from trunkline_internal.running as r where r.job_id = h.holder)
    ) as h
  ),
  written as (
    insert into trunkline_internal.gate_states (
      gate, epoch, free_at, reckoned_by, holders, charged_at, charged_requests, charged_tokens, place
    )
    select
      c.gate,
      coalesce((c.state).epoch, 0) + 1,
      nullif(
        trunkline_internal.gate_free_at(p_limit => c.m, p_state => c.state, p_requests => 1, p_tokens => 1), '-infinity'::timestamptz
      ),
      (c.m).updated_at,
      case when (c.m).concurrency is not null then c.live || c.jobs end,
      (c.state).charged_at, (c.state).charged_requests, (c.state).charged_tokens,
      case
        when p_covered ? c.gate::text then trunkline_internal.next_position(
          p_position => (c.state).place, p_for => 'gate',
          p_names => array(select n.name from jsonb_each_text(p_covered -> c.gate::text) as n (name, value)),
          p_covered => array(select n.value::bigint from jsonb_each_text(p_covered -> c.gate::text) as n (name, value)),
          p_snapshot => p_snapshot, p_now => p_now
        )
        when (c.state).place is null and cardinality(c.jobs) >= c_busy then '{}'::jsonb
        else (c.state).place
      end
    from charged as c
    returning gate, epoch
  )
  select array_agg(w.gate), array_agg(w.epoch) into v_gates, v_epochs from written as w;
  delete from trunkline_internal.gate_states as s
  using unnest(v_gates, v_epochs) as w (gate, epoch)
  where s.gate = w.gate and s.epoch = w.epoch - 1;
end;
$$;
comment on function trunkline_internal.charge_gates(trunkline_internal.gated_job[], jsonb, pg_snapshot, timestamptz) is 'Charges gates with the limited jobs that a claim starts: the next epoch of each is written and the last one deleted.';
